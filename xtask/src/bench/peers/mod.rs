//! `cargo xtask peers`: compares the speed with llama.cpp, in turn, on the same random weights.
//!
//! The source of llama.cpp comes from the package llama-cpp-python, and the package gguf writes its weights. Later
//! runs use the same weights and executables again.

mod batches;
mod programs;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

use self::{
    batches::Batch,
    programs::{Pair, Programs, STEPS},
    table::{Measurement, Ratio},
};
use super::stats::{first_row, number};
use crate::{
    shell,
    toolchain::{
        detect,
        setup::setup,
        venv::{self, Packages},
        wheels,
    },
    workspace::Workspace,
};

/// The version and sha256 of llama.cpp's source on PyPI.
const LLAMA_CPP_PYTHON: (&str, &str) =
    ("0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e");
const GGUF: &str = "gguf==0.19.0";
const WRITE_GGUF: &str = include_str!("write_gguf.py");
/// The variable that names a folder with llama.cpp's executables, which are then not built.
const LLAMA_CPP: &str = "MLXCEL_LLAMA_CPP";
const SEED: &str = "0";
const PROMPT: usize = 512;
/// The length of the prompt when the time to the first token is measured.
const SHORT_PROMPT: usize = 16;

/// The executables of llama.cpp that are used.
const TOOLS: [&str; 3] = ["llama-bench", "llama-batched-bench", "llama-quantize"];

/// Precisions and quantizations by our name and by llama.cpp's.
const FORMATS: [(&str, &str); 3] = [("bf16", "BF16"), ("q8", "Q8_0"), ("q4", "Q4_0")];

/// The options of `cargo xtask peers`.
#[derive(Args)]
pub(crate) struct Peers {
    /// The preset whose shape the weights have
    #[arg(long, default_value = "llama-3.2-1b")]
    model: String,
    /// How often each test is repeated
    #[arg(short, long, value_name = "N", default_value_t = 5)]
    repeats: usize,
    /// Threads of both programs
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Tokens in the cache for the second decode test; 0 skips it
    #[arg(long, value_name = "N", default_value_t = 4096)]
    depth: usize,
    /// Measure so many sequences at once, separated by commas, in place of one: beside llama-batched-bench
    #[arg(long, value_name = "B", value_delimiter = ',')]
    parallel: Vec<usize>,
    /// Prompt lengths for --parallel, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128", requires = "parallel")]
    prompts: Vec<usize>,
    /// Only these formats, separated by commas: bf16, q8, q4
    #[arg(long, value_name = "FORMAT", value_delimiter = ',')]
    only: Vec<String>,
    /// The folder of weights, bundles and llama.cpp [default: target/peers]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Makes the missing files, measures, and prints the table.
pub(crate) fn peers(workspace: &Workspace, peers: &Peers) -> Result<()> {
    let unknown = peers.only.iter().find(|name| FORMATS.iter().all(|(ours, _)| ours != name));
    if let Some(name) = unknown {
        bail!("found the format `{name}`, expected bf16, q8 or q4");
    }
    setup(workspace)?;
    shell::run_to_stderr(
        &mut workspace.cargo("build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bins"),
    )?;
    let folder = match &peers.folder {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => workspace.root.join("target/peers"),
    };
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let tools = match workspace.variable(LLAMA_CPP) {
        Some(tools) => tools,
        None => llama_cpp(workspace, &folder)?,
    };
    let pairs = pairs(workspace, peers, &folder, &tools)?;
    let programs = Programs {
        run: workspace.release_binary("mlxcel-run")?,
        bench: workspace.release_binary("mlxcel-bench")?,
        llama_bench: tools.join("llama-bench"),
        llama_batched_bench: tools.join("llama-batched-bench"),
        threads: peers.threads.to_string(),
        depth: peers.depth,
    };
    let batches = Batch::all(&peers.prompts, &peers.parallel);
    let mut measured = Vec::new();
    for repeat in 1..=peers.repeats {
        for pair in &pairs {
            eprintln!("{repeat} of {}: {}", peers.repeats, pair.ours);
            if batches.is_empty() {
                measured.extend(programs.measure(workspace, pair)?);
            }
            for batch in &batches {
                measured.push(batch.measure(&programs, workspace, pair)?);
            }
        }
    }
    let ratios = Ratio::of(&measured);
    shell::print(&table::render(&ratios))
}

impl Programs {
    /// Measures both programs, test by test, one right after the other.
    fn measure(&self, workspace: &Workspace, pair: &Pair) -> Result<Vec<Measurement>> {
        let mut tests = vec![(PROMPT, 0, 0), (0, STEPS, 0)];
        if self.depth > 0 {
            tests.push((0, STEPS, self.depth));
        }
        let mut measured = Vec::new();
        for (prompt, steps, depth) in tests {
            let arguments = |command: &mut Command| {
                for (option, number) in [("-p", prompt), ("-n", steps), ("-d", depth), ("-r", 1)] {
                    command.args([option, &number.to_string()]);
                }
                command.args(["-t", &self.threads, "-o", "json"]);
            };
            let mut ours = workspace.command(&self.bench);
            ours.arg(&pair.bundle).args(["--device", "local-task"]);
            arguments(&mut ours);
            let mut theirs = workspace.command(&self.llama_bench);
            theirs.arg("-m").arg(&pair.gguf);
            arguments(&mut theirs);
            let (ours, theirs) = (first_row(&mut ours)?, first_row(&mut theirs)?);
            let test = ours.get("test").and_then(Value::as_str).unwrap_or_default();
            measured.push(Measurement {
                test: format!("{} {test}", pair.ours),
                beside: pair.theirs,
                unit: "tok/s",
                ours: number(&ours, "mean_tok_s")?,
                theirs: number(&theirs, "avg_ts")?,
                share: ours.get("bandwidth_share").and_then(Value::as_f64),
            });
        }
        measured.push(self.first_token(workspace, pair)?);
        Ok(measured)
    }

    /// Measures the time of a process that generates one token after a short prompt.
    fn first_token(&self, workspace: &Workspace, pair: &Pair) -> Result<Measurement> {
        let tokens: Vec<_> = (1..=SHORT_PROMPT).map(|token| token.to_string()).collect();
        let mut ours = workspace.command(&self.run);
        ours.arg(&pair.bundle).args(["--tokens", &tokens.join(","), "-n", "1", "--ignore-eos", "--json"]);
        ours.args(["--device", "local-task", "-t", &self.threads]);
        let mut theirs = workspace.command(&self.llama_bench);
        theirs.arg("-m").arg(&pair.gguf);
        theirs.args([
            "-p",
            &SHORT_PROMPT.to_string(),
            "-n",
            "0",
            "-r",
            "1",
            "--no-warmup",
            "-t",
            &self.threads,
        ]);
        let [ours, theirs] = [ours, theirs].map(|mut command| {
            // The first run fills the page cache.
            shell::output(&mut command)?;
            let start = Instant::now();
            shell::output(&mut command).map(|_| start.elapsed().as_secs_f64())
        });
        Ok(Measurement {
            test: format!("{} first token", pair.ours),
            beside: pair.theirs,
            unit: "s",
            ours: ours?,
            theirs: theirs?,
            share: None,
        })
    }
}

/// Makes the missing weights, and the bundles.
fn pairs(workspace: &Workspace, peers: &Peers, folder: &Path, tools: &Path) -> Result<Vec<Pair>> {
    let weights = folder.join(format!("{}-random", peers.model));
    let compile = workspace.release_binary("mlxcel-compile")?;
    if !weights.exists() {
        let mut make = workspace.command(&compile);
        make.args(["random-weights", "--model", &peers.model, "--seed", SEED, "--out"]).arg(&weights);
        shell::run_to_stderr(&mut make)?;
    }
    let bf16 = folder.join(format!("{}-BF16.gguf", peers.model));
    make_atomically(&bf16, |to| {
        // Python imports from the script's folder first, so the script must not have the name of a module it imports.
        let script = folder.join("write_gguf.py");
        fs::write(&script, WRITE_GGUF).with_context(|| script.display().to_string())?;
        let python = python(workspace, folder)?;
        shell::run_to_stderr(workspace.command(python).arg(script).arg(&weights).arg(to))
    })?;
    let wanted =
        |(ours, _): &&(&str, &str)| peers.only.is_empty() || peers.only.iter().any(|name| name == ours);
    let mut pairs = Vec::new();
    for (ours, theirs) in FORMATS.iter().filter(wanted) {
        let gguf = folder.join(format!("{}-{theirs}.gguf", peers.model));
        make_atomically(&gguf, |to| {
            let mut quantize = workspace.command(tools.join("llama-quantize"));
            // All matrices have one format, embedding and head too.
            shell::run_to_stderr(quantize.arg("--pure").arg(&bf16).arg(to).arg(theirs))
        })?;
        // Compiling again is quick if nothing changed, and necessary otherwise.
        let bundle = folder.join(format!("{}-{ours}", peers.model));
        let mut build = workspace.command(&compile);
        build
            .arg("--model")
            .arg(&weights)
            .args(["--target", "cpu", "--precision", "bf16", "--out"])
            .arg(&bundle);
        build.args(["--ctx-size", &(peers.depth + PROMPT + STEPS).to_string()]);
        if *ours != "bf16" {
            build.args(["--quant", ours]);
        }
        shell::run_to_stderr(&mut build)?;
        pairs.push(Pair { ours, theirs, bundle, gguf });
    }
    Ok(pairs)
}

/// Makes `file` if it is missing, with an atomic rename.
fn make_atomically(file: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    // llama-quantize takes a file name that contains a type's name for the type.
    let staged = file.with_file_name("staged.part");
    make(&staged)?;
    fs::rename(&staged, file).with_context(|| file.display().to_string())
}

/// Returns a Python with the package gguf.
fn python(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    venv::python(workspace, &folder.join("venv"), Packages::Named(&[GGUF]))
}

/// Builds llama.cpp for this machine's CPU. Returns the folder of its executables.
fn llama_cpp(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    let (version, sha256) = LLAMA_CPP_PYTHON;
    let source = folder.join(format!("llama_cpp_python-{version}/vendor/llama.cpp"));
    let build = source.join("build");
    let tools = build.join("bin");
    if TOOLS.iter().all(|tool| tools.join(tool).is_file()) {
        return Ok(tools);
    }
    if !source.is_dir() {
        let python = python(workspace, folder)?;
        let mut pip = workspace.command(python);
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            "llama-cpp-python",
            "--dest",
        ]);
        shell::run_to_stderr(pip.arg(folder).arg(format!("llama-cpp-python=={version}")))?;
        let archive = folder.join(format!("llama_cpp_python-{version}.tar.gz"));
        wheels::verify(&archive, sha256)?;
        shell::run_to_stderr(workspace.command("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder))?;
    }
    let cmake = workspace.toolchain.join("cmake/cmake/data/bin/cmake");
    let mut configure = workspace.command(&cmake);
    configure.arg("-S").arg(&source).arg("-B").arg(&build).args([
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
    ]);
    // gcc 12 omits half of the AMX tile configuration, so that 8 and 4-bit products end with SIGILL.
    let clang = detect::clang_path(workspace);
    configure.env("CC", &clang).env("CXX", clang.with_file_name("clang++"));
    for option in ["LLAMA_CURL", "LLAMA_BUILD_SERVER", "LLAMA_BUILD_TESTS", "LLAMA_BUILD_EXAMPLES"] {
        configure.arg(format!("-D{option}=OFF"));
    }
    shell::run_to_stderr(&mut configure)?;
    let mut compile = workspace.command(&cmake);
    shell::run_to_stderr(compile.arg("--build").arg(&build).arg("--target").args(TOOLS))?;
    Ok(tools)
}
