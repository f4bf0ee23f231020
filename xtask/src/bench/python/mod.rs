//! `cargo xtask python`: what Python costs, beside mlxcel-bench and beside one call for all prompts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::{
    record::{Record, recorded},
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
/// The file of the measurements.
const RECORD: &str = "measured-python.jsonl";
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

/// A measurement of a model in a repeat.
#[derive(Serialize)]
struct Sample {
    model: String,
    #[serde(flatten)]
    found: Found,
}

/// What was found.
#[derive(Serialize)]
#[serde(tag = "test", rename_all = "snake_case")]
enum Found {
    /// Microseconds of a token of one stream: of mlxcel-bench, of Python, those outside the engine's steps, and those that
    /// the thread that reads ran.
    Alone { bench_us: f64, python_us: f64, outside_us: f64, reading_us: f64 },
    /// Tokens of prompts and answers per second: of one call, and of as many streams.
    Together { call_tok_s: f64, streams_tok_s: f64 },
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
    let measure = |record: &mut Record<Sample>| {
        for model in &options.model {
            let bundle = bench.bundle(&folder, model)?;
            bench.alone(model, &bundle, record)?;
            bench.together(model, &bundle, record)?;
        }
        Ok(())
    };
    recorded(&folder.join(RECORD), measure, |samples| shell::print(&table(options, samples)))
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
    fn alone(&self, model: &str, bundle: &Path, record: &mut Record<Sample>) -> Result<()> {
        let Self { workspace, options, .. } = self;
        let &Python { repeats, threads, .. } = *options;
        for repeat in 1..=repeats {
            eprintln!("{repeat} of {repeats}: {model}, one stream");
            let mut bench = workspace.command(&self.bench);
            bench.arg(bundle).args(["--device", "local-task", "-t", &threads.to_string(), "-p", "0"]);
            let rate = first_row(bench.args(["-n", &ALONE.to_string(), "-r", "1", "-o", "json"]))?;
            let measured = self.speed("one", bundle, &[ALONE])?;
            let seconds = measured.first().context("speed.py printed nothing")?;
            let found = Found::Alone {
                bench_us: 1e6 / number(&rate, "mean_tok_s")?,
                python_us: 1e6 * number(seconds, "seconds")?,
                outside_us: 1e6 * number(seconds, "outside")?,
                reading_us: 1e6 * number(seconds, "reading")?,
            };
            record.push(Sample { model: model.to_owned(), found })?;
        }
        Ok(())
    }

    /// Measures asynchronous streams, in pairs with one call that takes all prompts.
    fn together(&self, model: &str, bundle: &Path, record: &mut Record<Sample>) -> Result<()> {
        let &Python { streams, prompt, tokens, repeats, .. } = self.options;
        eprintln!("{repeats} times: {model}, {streams} streams");
        let measured = self.speed("many", bundle, &[tokens, streams, prompt, repeats])?;
        for row in &measured {
            let [call_tok_s, streams_tok_s] = [number(row, "call")?, number(row, "streams")?];
            let found = Found::Together { call_tok_s, streams_tok_s };
            record.push(Sample { model: model.to_owned(), found })?;
        }
        ensure!(measured.len() == repeats, "found {} measurements, expected {repeats}", measured.len());
        Ok(())
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

/// Formats what was measured as a table.
fn table(options: &Python, samples: &[Sample]) -> String {
    let head = ["test", "mlxcel-bench, or one call", "Python", "Python beside it"];
    let mut rows = vec![];
    for model in &options.model {
        let of_model =
            move || samples.iter().filter(move |sample| sample.model == *model).map(|sample| &sample.found);
        let alone = of_model().filter_map(|found| match *found {
            Found::Alone { bench_us, python_us, outside_us, reading_us } => {
                Some([bench_us, python_us, outside_us, reading_us])
            }
            Found::Together { .. } => None,
        });
        let together = of_model().filter_map(|found| match *found {
            Found::Together { call_tok_s, streams_tok_s } => Some([call_tok_s, streams_tok_s]),
            Found::Alone { .. } => None,
        });
        let (alone, together): (Vec<_>, Vec<_>) = (alone.collect(), together.collect());
        if !alone.is_empty() {
            rows.extend(alone_rows(model, &alone));
        }
        if !together.is_empty() {
            rows.push(together_row(options, model, &together));
        }
    }
    shell::markdown_table(head, rows)
}

/// Returns the rows of one stream, of at least one repeat.
fn alone_rows(model: &str, samples: &[[f64; 4]]) -> [[String; 4]; 3] {
    let of = |value: fn(&[f64; 4]) -> f64| spread(samples.iter().map(value).collect());
    let [low, middle, high] = of(|[bench, python, ..]| python - bench);
    let beside = [
        format!("{model}, a token of one stream"),
        format!("{:.1} µs", of(|sample| sample[0])[1]),
        format!("{:.1} µs", of(|sample| sample[1])[1]),
        format!("{middle:+.1} µs ({low:+.1} to {high:+.1})"),
    ];
    // Of one process, so that a machine whose speed changes does not change it, and beside nothing.
    let within = |what: &str, [low, middle, high]: [f64; 3]| {
        let python = format!("{middle:.1} µs ({low:.1} to {high:.1})");
        [format!("{model}, {what}"), "-".to_owned(), python, "-".to_owned()]
    };
    [
        beside,
        within("of it outside the engine's steps", of(|sample| sample[2])),
        within("processor time of the thread that reads", of(|sample| sample[3])),
    ]
}

/// Returns the row of many streams, of at least one repeat.
fn together_row(options: &Python, model: &str, samples: &[[f64; 2]]) -> [String; 4] {
    let Python { streams, prompt, tokens, .. } = options;
    let of = |value: fn(&[f64; 2]) -> f64| spread(samples.iter().map(value).collect());
    let [low, middle, high] = of(|[call, streams]| 100.0 * streams / call);
    [
        format!("{model}, {streams} asyncio streams of {prompt} + {tokens} tokens"),
        format!("{:.1} prompt and answer tok/s", of(|sample| sample[0])[1]),
        format!("{:.1} prompt and answer tok/s", of(|sample| sample[1])[1]),
        format!("{middle:.1} % ({low:.1} to {high:.1})"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_measured_is_in_the_table() {
        let options = Python {
            model: vec!["a".into(), "b".into()],
            quant: "q8".into(),
            streams: 32,
            prompt: 16,
            tokens: 64,
            repeats: 2,
            threads: 2,
            folder: None,
        };
        let of = |model: &str, found| Sample { model: model.to_owned(), found };
        let samples = [
            of("a", Found::Alone { bench_us: 10.0, python_us: 12.0, outside_us: 1.0, reading_us: 3.0 }),
            of("a", Found::Alone { bench_us: 20.0, python_us: 24.0, outside_us: 2.0, reading_us: 4.0 }),
            of("a", Found::Together { call_tok_s: 100.0, streams_tok_s: 90.0 }),
        ];
        // The run ended before the second model was measured.
        insta::assert_snapshot!(table(&options, &samples), @"
        | test                                        | mlxcel-bench, or one call      | Python                        | Python beside it |
        |---                                          |---                             |---                            |---|
        | a, a token of one stream                    | 15.0 µs                        | 18.0 µs                       | +3.0 µs (+2.0 to +4.0) |
        | a, of it outside the engine's steps         | -                              | 1.5 µs (1.0 to 2.0)           | - |
        | a, processor time of the thread that reads  | -                              | 3.5 µs (3.0 to 4.0)           | - |
        | a, 32 asyncio streams of 16 + 64 tokens     | 100.0 prompt and answer tok/s  | 90.0 prompt and answer tok/s  | 90.0 % (90.0 to 90.0) |
        ");
        let line = serde_json::to_value(&samples[2]).unwrap();
        assert_eq!(
            line.to_string(),
            r#"{"model":"a","test":"together","call_tok_s":100.0,"streams_tok_s":90.0}"#
        );
    }
}
