//! `cargo xtask serving`: compares mlxcel-serve with llama-server under a load tool of others, on the same weights.
//!
//! Both servers run at the same time, and one of them gets requests: first ours, then theirs, for each number of clients.

mod load;
mod servers;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::Value;

use self::{
    load::{Load, Shape},
    servers::Server,
};
use super::{
    llama_cpp,
    pairs::{Pair, QUANTIZE, Weights, check_formats, random_checkpoint},
    ratio::{Measurement, Ratio, in_turn, render},
    record::{Record, recorded},
    stats::at_least_one,
};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

const WRITE_TOKENIZER: &str = include_str!("write_tokenizer.py");

/// The executables of llama.cpp that are used.
const TOOLS: [&str; 2] = ["llama-server", QUANTIZE];

/// The file of the measurements.
const RECORD: &str = "measured-serving.jsonl";

/// The model that has its own weights, in `models/`.
const DEMO: &str = "demo";

/// The options of `cargo xtask serving`.
#[derive(Args)]
pub(crate) struct Serving {
    /// The preset whose shape the weights have, or `demo`, the model of 2 million parameters
    #[arg(long, default_value = "llama-3.2-1b")]
    model: String,
    /// The format of the weights: bf16, q8 or q4
    #[arg(long, default_value = "q4")]
    format: String,
    /// Numbers of clients, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4,8", value_parser = at_least_one())]
    clients: Vec<usize>,
    /// How often everything is measured
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = at_least_one())]
    repeats: usize,
    /// Requests of each client
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = at_least_one())]
    requests: usize,
    /// Tokens of each prompt
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = at_least_one())]
    prompt: usize,
    /// Tokens of each answer
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one())]
    tokens: usize,
    /// Threads of both servers
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = at_least_one())]
    threads: usize,
    /// Measure once, with two requests of each client
    #[arg(long)]
    quick: bool,
    /// Write the measurements to a file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder of weights, bundles and llama.cpp [default: target/peers]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Makes the missing files, starts the servers, measures, and prints the table.
pub(crate) fn serving(workspace: &Workspace, serving: &Serving) -> Result<()> {
    check_formats(std::slice::from_ref(&serving.format))?;
    setup(workspace)?;
    shell::run_to_stderr(
        &mut workspace
            .cargo("build --release -p mlxcel-compiler-driver -p mlxcel-runtime -p mlxcel-serve --bins"),
    )?;
    let folder = match &serving.folder {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => workspace.root.join("target/peers"),
    };
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let tools = llama_cpp::tools(workspace, &folder, &TOOLS)?;
    let checkpoint = checkpoint(workspace, &folder, &serving.model)?;
    let name = format!("{}-served", serving.model);
    let shape = Shape { prompt: serving.prompt, tokens: serving.tokens };
    let context = shape.context();
    let weights = Weights { checkpoint: &checkpoint, name: &name, folder: &folder, tools: &tools, context };
    let pairs = weights.pairs(workspace, std::slice::from_ref(&serving.format))?;
    let pair = pairs.first().context("found no format")?;
    let load = Load::new(workspace, &folder, &checkpoint, shape)?;
    let show = |measured: &[Measurement]| {
        let ratios = Ratio::of(measured);
        if let Some(file) = &serving.json {
            let rows: Vec<Value> = ratios.iter().map(Ratio::to_json).collect();
            let text = format!("{:#}\n", Value::from(rows));
            fs::write(file, text).with_context(|| file.display().to_string())?;
        }
        shell::print(&render(&ratios))
    };
    recorded(&folder.join(RECORD), |record| measure(workspace, serving, &tools, pair, &load, record), show)
}

/// Measures both servers in turn.
fn measure(
    workspace: &Workspace,
    serving: &Serving,
    tools: &Path,
    pair: &Pair,
    load: &Load<'_>,
    record: &mut Record<Measurement>,
) -> Result<()> {
    let threads = serving.threads.to_string();
    let ours = Server::ours(workspace, &pair.bundle, &threads)?;
    // A slot for each client, or requests would wait there and not with us.
    let slots = serving.clients.iter().copied().max().context("found no number of clients")?;
    let theirs = Server::theirs(workspace, tools, &pair.gguf, &threads, slots, load.shape.context())?;
    let (repeats, requests) = if serving.quick { (1, 2) } else { (serving.repeats, serving.requests) };
    for repeat in 1..=repeats {
        for &clients in &serving.clients {
            let of = |server: &Server, name| {
                eprintln!("{repeat} of {repeats}: {clients} clients of {name}");
                load.run(workspace, server, clients, clients * requests, seed(repeat, clients))
            };
            let (ours, theirs) =
                in_turn(repeat, || of(&ours, "mlxcel-serve"), || of(&theirs, "llama-server"))?;
            for (ours, theirs) in ours.into_iter().zip(theirs) {
                record.push(Measurement {
                    test: format!("{} × {clients} {}", pair.ours, ours.name),
                    beside: pair.theirs,
                    unit: ours.unit,
                    ours: ours.value,
                    theirs: theirs.value,
                    share: None,
                })?;
            }
        }
    }
    Ok(())
}

/// Returns the seed of the prompts of a measurement. Servers keep what they computed for a prompt, so that one that comes again
/// costs nothing.
fn seed(repeat: usize, clients: usize) -> usize {
    (repeat << 16) + clients
}

/// Returns the folder of a checkpoint with a tokenizer. Random weights have none of their own.
pub(super) fn checkpoint(workspace: &Workspace, folder: &Path, model: &str) -> Result<PathBuf> {
    if model == DEMO {
        return Ok(workspace.root.join("models").join(DEMO));
    }
    let weights = random_checkpoint(workspace, folder, model)?;
    let served = folder.join(format!("{model}-served-checkpoint"));
    fs::create_dir_all(&served).with_context(|| served.display().to_string())?;
    for name in ["config.json", "model.safetensors"] {
        let link = served.join(name);
        // Anew each time, because one that is there may lead nowhere.
        _ = fs::remove_file(&link);
        symlink(weights.join(name), &link).with_context(|| link.display().to_string())?;
    }
    let script = folder.join("write_tokenizer.py");
    fs::write(&script, WRITE_TOKENIZER).with_context(|| script.display().to_string())?;
    shell::run_to_stderr(workspace.command("python3").arg(script).arg(&served))?;
    Ok(served)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_measurements_have_the_same_prompts() {
        let all = (1..=50).flat_map(|repeat| (1..=64).map(move |clients| seed(repeat, clients)));
        assert_eq!(all.collect::<BTreeSet<_>>().len(), 50 * 64);
    }
}
