//! `cargo xtask opening`: measures what verifying and opening a bundle cost, beside reading it.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use clap::Args;

use super::stats::{at_least_one, spread};
use crate::{shell, toolchain::setup::setup_for_build, workspace::Workspace};

/// The size of the largest tokenizers of models of this size.
const TOKENIZER_BYTES: usize = 17 << 20;

/// The options of `cargo xtask opening`.
#[derive(Args)]
pub(crate) struct Opening {
    /// The preset whose shape the random weights have
    #[arg(long, default_value = "llama-3.2-1b")]
    model: String,
    /// How often each measurement is repeated
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = at_least_one())]
    repeats: usize,
}

/// Makes the bundle, measures, and prints the table.
pub(crate) fn opening(workspace: &Workspace, opening: &Opening) -> Result<()> {
    setup_for_build(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(
        "build --release -p mlxcel-compiler-driver -p mlxcel-runtime -p mlxcel-artifacts --bins --example opening",
    ))?;
    let bundle = bundle(workspace, opening)?;
    // The store does not remember verified files that were just written.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut command: Command = workspace.command(workspace.release_binary("examples/opening")?);
    let text = shell::output(command.arg(&bundle).arg(opening.repeats.to_string()))?;
    let mut columns: [Vec<f64>; 7] = Default::default();
    for line in text.lines() {
        let numbers: Vec<f64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
        if let [cold_read, cold_verify, read, verify, open] = numbers[..] {
            let all = [cold_read, cold_verify, cold_verify / cold_read, read, verify, verify / read, open];
            for (column, number) in columns.iter_mut().zip(all) {
                column.push(number);
            }
        }
    }
    let heads = [
        "read from the disk, ms",
        "verify from the disk, ms",
        "verify / read",
        "read from the cache, ms",
        "verify from the cache, ms",
        "verify / read",
        "open a verified one, ms",
    ];
    let rows = heads.into_iter().zip(columns).map(|(head, column)| {
        let [low, median, high] = spread(column);
        [head.to_owned(), format!("{median:.2}"), format!("{low:.2} to {high:.2}")]
    });
    shell::print(&shell::markdown_table(["", "median", "lowest to highest"], rows.collect()))
}

/// Compiles the preset with random weights and a tokenizer of realistic size.
fn bundle(workspace: &Workspace, opening: &Opening) -> Result<PathBuf> {
    let folder = workspace.root.join("target/opening").join(&opening.model);
    let write = || {
        fs::create_dir_all(&folder)?;
        let preset = workspace.root.join("models/presets").join(format!("{}.json", opening.model));
        fs::copy(preset, folder.join("config.json"))?;
        fs::write(
            folder.join("tokenizer.json"),
            format!("{{\"padding\": \"{}\"}}", "x".repeat(TOKENIZER_BYTES)),
        )
    };
    write().with_context(|| folder.display().to_string())?;
    let bundle = folder.join("bundle");
    let mut build = workspace.command(workspace.release_binary("mlxcel-compile")?);
    build.arg("--model").arg(&folder).args([
        "--target",
        "cpu",
        "--weights",
        "random:0",
        "--precision",
        "bf16",
    ]);
    shell::run_to_stderr(build.arg("--out").arg(&bundle))?;
    Ok(bundle)
}
