//! `cargo xtask sparse`: compares a mixture of 64 experts, 8 per token, with a dense model that reads as many weights.
//!
//! If routing is sparse, a decode step of both takes the same time, apart from routing itself.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;

use super::{
    record::{Record, recorded},
    stats::{at_least_one, first_row, number, spread},
};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

/// OLMoE's shape with fewer layers, and a dense model whose mlp is as wide as eight experts.
const SHAPES: [(&str, &str); 2] =
    [("mixture", include_str!("mixture.json")), ("dense", include_str!("dense.json"))];
const STEPS: &str = "64";
/// The file of the measurements.
const RECORD: &str = "target/sparse/measured.jsonl";

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
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = at_least_one())]
    threads: usize,
}

/// The tokens per second of both models in a repeat.
#[derive(Serialize)]
struct Pair {
    mixture: f64,
    dense: f64,
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
    let bench = workspace.release_binary("mlxcel-bench")?;
    let speed = |bundle: &PathBuf| {
        let mut bench = workspace.command(&bench);
        bench.arg(bundle).args(["-p", "0", "-n", STEPS, "-r", "2", "-o", "json"]);
        bench.args(["--device", "local-task", "-t", &sparse.threads.to_string()]);
        number(&first_row(&mut bench)?, "mean_tok_s")
    };
    let measure = |record: &mut Record<Pair>| {
        for repeat in 1..=sparse.repeats {
            eprintln!("{repeat} of {}", sparse.repeats);
            record.push(Pair { mixture: speed(&bundles[0])?, dense: speed(&bundles[1])? })?;
        }
        Ok(())
    };
    recorded(&workspace.root.join(RECORD), measure, |pairs| shell::print(&table(&sparse.quant, pairs)))
}

/// Formats at least one pair as a table.
fn table(quant: &str, pairs: &[Pair]) -> String {
    let of = |value: fn(&Pair) -> f64| spread(pairs.iter().map(value).collect());
    let ([_, mixture, _], [_, dense, _]) = (of(|pair| pair.mixture), of(|pair| pair.dense));
    let [low, median, high] = of(|pair| pair.dense / pair.mixture);
    let head = ["quant", "mixture", "dense", "unit", "time of a step, ratio", "lowest to highest"];
    let row = [
        quant.to_owned(),
        format!("{mixture:.2}"),
        format!("{dense:.2}"),
        "tok/s".to_owned(),
        format!("{median:.2}"),
        format!("{low:.2} to {high:.2}"),
    ];
    shell::markdown_table(head, vec![row])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighboring_runs() {
        let pairs =
            [(10.0, 20.0), (20.0, 20.0), (30.0, 30.0)].map(|(mixture, dense)| Pair { mixture, dense });
        insta::assert_snapshot!(table("q8", &pairs), @"
        | quant  | mixture  | dense  | unit   | time of a step, ratio  | lowest to highest |
        |---     |---       |---     |---     |---                     |---|
        | q8     | 20.00    | 20.00  | tok/s  | 1.00                   | 1.00 to 2.00 |
        ");
    }
}
