//! `cargo xtask sparse`: compares a mixture of 64 experts, 8 per token, with a dense model that reads as many weights.
//!
//! If routing is sparse, a decode step of both takes the same time, apart from routing itself.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;

use super::stats::{at_least_one, first_row, number, spread};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

/// OLMoE's shape with fewer layers, and a dense model whose mlp is as wide as eight experts.
const SHAPES: [(&str, &str); 2] =
    [("mixture", include_str!("mixture.json")), ("dense", include_str!("dense.json"))];
const STEPS: &str = "64";

/// The options of `cargo xtask sparse`.
#[derive(Args)]
pub(crate) struct Sparse {
    /// The quantization of the weights: none, q8 or q4
    #[arg(long, default_value = "q8")]
    quant: String,
    /// How often each model is measured
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = at_least_one())]
    repeats: usize,
    /// Threads
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    threads: usize,
}

/// Makes both bundles, measures in turn, and prints the table.
pub(crate) fn sparse(workspace: &Workspace, sparse: &Sparse) -> Result<()> {
    setup(workspace)?;
    shell::run_to_stderr(
        &mut workspace.cargo("build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bins"),
    )?;
    let bundles = SHAPES.map(|(name, config)| bundle(workspace, sparse, name, config));
    let [mixture, dense] = bundles;
    let bundles = [mixture?, dense?];
    let (mut speeds, mut ratios) = ([vec![], vec![]], vec![]);
    for repeat in 1..=sparse.repeats {
        eprintln!("{repeat} of {}", sparse.repeats);
        for (bundle, speeds) in bundles.iter().zip(&mut speeds) {
            let mut bench = workspace.command(workspace.release_binary("mlxcel-bench")?);
            bench.arg(bundle).args(["-p", "0", "-n", STEPS, "-r", "2", "-o", "json"]);
            bench.args(["--device", "local-task", "-t", &sparse.threads.to_string()]);
            speeds.push(number(&first_row(&mut bench)?, "mean_tok_s")?);
        }
        if let (Some(mixture), Some(dense)) = (speeds[0].last(), speeds[1].last()) {
            ratios.push(dense / mixture);
        }
    }
    let [[_, mixture, _], [_, dense, _]] = speeds.map(spread);
    let [low, median, high] = spread(ratios);
    let head = ["quant", "mixture", "dense", "unit", "time of a step, ratio", "lowest to highest"];
    let row = [
        sparse.quant.clone(),
        format!("{mixture:.2}"),
        format!("{dense:.2}"),
        "tok/s".to_owned(),
        format!("{median:.2}"),
        format!("{low:.2} to {high:.2}"),
    ];
    shell::print(&shell::markdown_table(head, vec![row]))
}

/// Compiles the bundle of a shape with random weights.
fn bundle(workspace: &Workspace, sparse: &Sparse, name: &str, config: &str) -> Result<PathBuf> {
    let model = workspace.root.join("target/sparse").join(name);
    fs::create_dir_all(&model).with_context(|| model.display().to_string())?;
    fs::write(model.join("config.json"), config).with_context(|| model.display().to_string())?;
    let bundle = model.with_extension(&sparse.quant);
    let mut build = workspace.command(workspace.release_binary("mlxcel-compile")?);
    build.arg("--model").arg(&model).args(["--target", "cpu", "--weights", "random:0", "--ctx-size", "512"]);
    build.args(["--quant", &sparse.quant, "--out"]).arg(&bundle);
    shell::run_to_stderr(&mut build)?;
    Ok(bundle)
}
