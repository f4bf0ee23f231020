//! `cargo xtask peers`: compares the speed with llama.cpp, in turn, on the same random weights.
//!
//! Later runs use the same weights and executables again.

mod batches;
mod programs;

use std::{fs, path::PathBuf, process::Command, time::Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::Value;

use self::{
    batches::Batch,
    programs::{Programs, STEPS},
};
use super::{
    llama_cpp,
    pairs::{Pair, QUANTIZE, Weights, check_formats, random_checkpoint},
    ratio::{Measurement, Ratio, in_turn, render},
    record::{Record, recorded},
    stats::{at_least_one, first_row, number},
};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

const PROMPT: usize = 512;
/// The length of the prompt when the time to the first token is measured.
const SHORT_PROMPT: usize = 16;

/// The file of the measurements.
const RECORD: &str = "measured-peers.jsonl";

/// The executables of llama.cpp that are used.
const TOOLS: [&str; 3] = ["llama-bench", "llama-batched-bench", QUANTIZE];

/// The options of `cargo xtask peers`.
#[derive(Args)]
pub(crate) struct Peers {
    /// The preset whose shape the weights have
    #[arg(long, default_value = "llama-3.2-1b")]
    model: String,
    /// How often each test is repeated
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = at_least_one())]
    repeats: usize,
    /// Threads of both programs
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = at_least_one())]
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
    /// Only these formats, separated by commas: bf16, q8, q4; gguf-q4_0, gguf-q4_k_m and gguf-q8_0 are files that both read
    #[arg(long, value_name = "FORMAT", value_delimiter = ',')]
    only: Vec<String>,
    /// The folder of weights, bundles and llama.cpp [default: target/peers]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Makes the missing files, measures, and prints the table.
pub(crate) fn peers(workspace: &Workspace, peers: &Peers) -> Result<()> {
    check_formats(&peers.only)?;
    setup(workspace)?;
    shell::run_to_stderr(
        &mut workspace.cargo("build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bins"),
    )?;
    let folder = match &peers.folder {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => workspace.root.join("target/peers"),
    };
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let tools = llama_cpp::tools(workspace, &folder, &TOOLS)?;
    let weights = Weights {
        checkpoint: &random_checkpoint(workspace, &folder, &peers.model)?,
        name: &peers.model,
        folder: &folder,
        tools: &tools,
        context: peers.depth + PROMPT + STEPS,
    };
    let pairs = weights.pairs(workspace, &peers.only)?;
    let programs = Programs {
        run: workspace.release_binary("mlxcel-run")?,
        bench: workspace.release_binary("mlxcel-bench")?,
        llama_bench: tools.join("llama-bench"),
        llama_batched_bench: tools.join("llama-batched-bench"),
        threads: peers.threads.to_string(),
        depth: peers.depth,
    };
    let batches = Batch::all(&peers.prompts, &peers.parallel);
    recorded(
        &folder.join(RECORD),
        |record| {
            for repeat in 1..=peers.repeats {
                for pair in &pairs {
                    eprintln!("{repeat} of {}: {}", peers.repeats, pair.ours);
                    if batches.is_empty() {
                        programs.measure(workspace, pair, repeat, record)?;
                    }
                    for batch in &batches {
                        record.push(batch.measure(&programs, workspace, pair, repeat)?)?;
                    }
                }
            }
            Ok(())
        },
        |measured| shell::print(&render(&Ratio::of(measured))),
    )
}

impl Programs {
    /// Measures both programs, test by test, one right after the other.
    fn measure(
        &self,
        workspace: &Workspace,
        pair: &Pair,
        repeat: usize,
        record: &mut Record<Measurement>,
    ) -> Result<()> {
        let mut tests = vec![(PROMPT, 0, 0), (0, STEPS, 0)];
        if self.depth > 0 {
            tests.push((0, STEPS, self.depth));
        }
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
            let (ours, theirs) = in_turn(repeat, || first_row(&mut ours), || first_row(&mut theirs))?;
            let test = ours.get("test").and_then(Value::as_str).unwrap_or_default();
            record.push(Measurement {
                test: format!("{} {test}", pair.ours),
                beside: pair.theirs,
                unit: "tok/s",
                ours: number(&ours, "mean_tok_s")?,
                theirs: number(&theirs, "avg_ts")?,
                share: ours.get("bandwidth_share").and_then(Value::as_f64),
            })?;
        }
        record.push(self.first_token(workspace, pair, repeat)?)
    }

    /// Measures the time of a process that generates one token after a short prompt.
    fn first_token(&self, workspace: &Workspace, pair: &Pair, repeat: usize) -> Result<Measurement> {
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
        let seconds = |command: &mut Command| {
            // The first run fills the page cache.
            shell::output(command)?;
            let start = Instant::now();
            shell::output(command).map(|_| start.elapsed().as_secs_f64())
        };
        let (ours, theirs) = in_turn(repeat, || seconds(&mut ours), || seconds(&mut theirs))?;
        Ok(Measurement {
            test: format!("{} first token", pair.ours),
            beside: pair.theirs,
            unit: "s",
            ours,
            theirs,
            share: None,
        })
    }
}
