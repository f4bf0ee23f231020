//! `cargo xtask python`: what Python costs, beside mlxcel-bench and beside one call for all prompts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::Value;

use super::{
    serving::checkpoint,
    stats::{at_least_one, first_row, number, spread},
};
use crate::{
    files::{copy_file, copy_folder},
    shell,
    toolchain::{
        setup::setup_for_build,
        venv::{self, Packages},
    },
    workspace::Workspace,
};

const SPEED: &str = include_str!("speed.py");
/// What the package needs. No figure depends on its version.
const NUMPY: &str = "numpy";
/// Tokens of a stream that is alone.
const ALONE: usize = 256;

/// The options of `cargo xtask python`.
#[derive(Args)]
pub(crate) struct Python {
    /// The presets whose shape the random weights have, or `demo`; separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "demo,qwen3-0.6b")]
    model: Vec<String>,
    /// The format of the weights, as `mlxcel-compile --quant` takes it
    #[arg(long, value_name = "FORMAT", default_value = "q8")]
    quant: String,
    /// Streams at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    streams: usize,
    /// Tokens of each prompt of these
    #[arg(long, value_name = "N", default_value_t = 32)]
    prompt: usize,
    /// Tokens of each answer to these
    #[arg(long, value_name = "N", default_value_t = 64)]
    tokens: usize,
    /// How often each measurement is repeated
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = at_least_one())]
    repeats: usize,
    /// Threads of the device
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// The folder of weights and bundles [default: target/peers]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// What a run needs.
struct Bench<'a> {
    workspace: &'a Workspace,
    options: &'a Python,
    bench: PathBuf,
    python: PathBuf,
    /// The folder with the package and the script.
    package: PathBuf,
}

/// Makes the missing files, measures, and prints the table.
pub(crate) fn python(workspace: &Workspace, options: &Python) -> Result<()> {
    let &Python { streams, prompt, tokens, repeats, threads, .. } = options;
    ensure!(
        [streams, prompt, tokens, repeats, threads].iter().all(|&number| number > 0),
        "found --streams {streams} --prompt {prompt} --tokens {tokens} --repeats {repeats} --threads {threads}, expected at least 1 of each"
    );
    setup_for_build(workspace)?;
    shell::run_to_stderr(
        &mut workspace.cargo(
            "build --release -p mlxcel-compiler-driver -p mlxcel-runtime -p mlxcel-python --lib --bins",
        ),
    )?;
    let folder = match &options.folder {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => workspace.root.join("target/peers"),
    };
    let bench = Bench::prepare(workspace, options, &folder)?;
    let head = ["test", "mlxcel-bench, or one call", "Python", "Python beside it"];
    let mut rows = vec![];
    for model in &options.model {
        let bundle = bench.bundle(&folder, model)?;
        rows.extend(bench.alone(model, &bundle)?);
        rows.push(bench.together(model, &bundle)?);
    }
    shell::print(&shell::markdown_table(head, rows))
}

impl<'a> Bench<'a> {
    /// Lays out the package as a wheel does.
    fn prepare(workspace: &'a Workspace, options: &'a Python, folder: &Path) -> Result<Self> {
        let package = folder.join("python");
        copy_folder(&workspace.root.join("runtime/python/mlxcel"), &package.join("mlxcel"))?;
        let native = workspace.release_binary("lib_native.so")?;
        copy_file(&native, &package.join("mlxcel/_native.abi3.so"), 0o644)?;
        let script = package.join("speed.py");
        fs::write(&script, SPEED).with_context(|| script.display().to_string())?;
        Ok(Self {
            workspace,
            options,
            bench: workspace.release_binary("mlxcel-bench")?,
            python: venv::python(workspace, &folder.join("numpy"), Packages::Named(&[NUMPY]))?,
            package,
        })
    }

    /// Compiles a model.
    fn bundle(&self, folder: &Path, model: &str) -> Result<PathBuf> {
        let Python { quant, .. } = self.options;
        let bundle = folder.join(format!("{model}-{quant}-python"));
        let mut compile = self.workspace.command(self.workspace.release_binary("mlxcel-compile")?);
        compile.arg("--model").arg(checkpoint(self.workspace, folder, model)?).args(["--target", "cpu"]);
        compile.args(["--quant", quant, "--ctx-size", "512", "--out"]).arg(&bundle);
        shell::run_to_stderr(&mut compile)?;
        Ok(bundle)
    }

    /// Measures the time of a token of one stream, in pairs with mlxcel-bench, and what of it is not the engine's.
    fn alone(&self, model: &str, bundle: &Path) -> Result<[[String; 4]; 2]> {
        let Self { workspace, options, .. } = self;
        let &Python { repeats, threads, .. } = *options;
        let (mut theirs, mut ours, mut outside) = (vec![], vec![], vec![]);
        for repeat in 1..=repeats {
            eprintln!("{repeat} of {repeats}: {model}, one stream");
            let mut bench = workspace.command(&self.bench);
            bench.arg(bundle).args(["--device", "local-task", "-t", &threads.to_string(), "-p", "0"]);
            let rate = first_row(bench.args(["-n", &ALONE.to_string(), "-r", "1", "-o", "json"]))?;
            theirs.push(1e6 / number(&rate, "mean_tok_s")?);
            let measured = self.speed("one", bundle, &[ALONE])?;
            let seconds = measured.first().context("speed.py printed nothing")?;
            ours.push(1e6 * number(seconds, "seconds")?);
            outside.push(1e6 * number(seconds, "outside")?);
        }
        let [low, middle, high] =
            spread(ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect());
        let beside = [
            format!("{model}, a token of one stream"),
            format!("{:.1} µs", spread(theirs)[1]),
            format!("{:.1} µs", spread(ours)[1]),
            format!("{middle:+.1} µs ({low:+.1} to {high:+.1})"),
        ];
        // Of one process, so that a machine whose speed changes does not change it.
        let [low, middle, high] = spread(outside);
        let within = [
            format!("{model}, of it outside the engine's steps"),
            "0 µs".to_owned(),
            format!("{middle:.1} µs"),
            format!("{middle:+.1} µs ({low:+.1} to {high:+.1})"),
        ];
        Ok([beside, within])
    }

    /// Measures asynchronous streams, in pairs with one call that takes all prompts.
    fn together(&self, model: &str, bundle: &Path) -> Result<[String; 4]> {
        let &Python { streams, prompt, tokens, repeats, .. } = self.options;
        eprintln!("{repeats} times: {model}, {streams} streams");
        let measured = self.speed("many", bundle, &[tokens, streams, prompt, repeats])?;
        let of = |name| measured.iter().map(|row| number(row, name)).collect::<Result<Vec<_>>>();
        let (calls, asynchronous) = (of("call")?, of("streams")?);
        ensure!(calls.len() == repeats, "found {} measurements, expected {repeats}", calls.len());
        let [low, middle, high] =
            spread(asynchronous.iter().zip(&calls).map(|(ours, call)| 100.0 * ours / call).collect());
        Ok([
            format!("{model}, {streams} asyncio streams of {prompt} + {tokens} tokens"),
            format!("{:.1} tok/s", spread(calls)[1]),
            format!("{:.1} tok/s", spread(asynchronous)[1]),
            format!("{middle:.1} % ({low:.1} to {high:.1})"),
        ])
    }

    /// Runs the script. Returns the objects that it prints.
    fn speed(&self, mode: &str, bundle: &Path, numbers: &[usize]) -> Result<Vec<Value>> {
        let mut command = self.workspace.command(&self.python);
        command.args(["-W", "ignore"]).arg(self.package.join("speed.py")).arg(mode).arg(bundle);
        command.arg(self.options.threads.to_string()).args(numbers.iter().map(usize::to_string));
        let text = shell::output(command.env("PYTHONPATH", &self.package))?;
        let rows = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        rows.with_context(|| shell::command_line(&command))
    }
}
