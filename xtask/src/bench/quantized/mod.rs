//! `cargo xtask quantized`: compares checkpoints that other tools quantized with those tools' own kernels, or with a bundle that
//! quantizes by itself.
//!
//! Tools run in virtual environments, which take 12 GB.

mod divergence;
mod start;
mod tools;

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;

use self::tools::Bench;
use super::stats::{Output, at_least_one};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

/// The options of `cargo xtask quantized`.
#[derive(Args)]
pub(crate) struct Quantized {
    /// Only these checkpoints, separated by commas: gguf-q4_0, mlx-4bit, bnb-nf4, …
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "start")]
    only: Vec<String>,
    /// The precision of our bundles [default: that of the checkpoint]
    #[arg(long, conflicts_with = "start")]
    precision: Option<String>,
    /// Measure how fast bundles of a 1B shape start and are packed, in place of divergences of the demo model
    #[arg(long)]
    start: bool,
    /// How often starts are measured
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = at_least_one(), requires = "start")]
    repeats: usize,
    /// The form of the result
    #[arg(short, long, value_enum, default_value = "md")]
    output: Output,
    /// The folder of checkpoints, bundles, llama.cpp and virtual environments [default: target/quantized]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Makes the missing files, measures, and prints the result.
pub(crate) fn quantized(workspace: &Workspace, quantized: &Quantized) -> Result<()> {
    let cases = divergence::chosen(&quantized.only)?;
    setup(workspace)?;
    shell::run_to_stderr(
        &mut workspace.cargo("build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bins"),
    )?;
    let folder = match &quantized.folder {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => workspace.root.join("target/quantized"),
    };
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let bench = Bench { workspace, folder };
    match quantized.start {
        true => start::measure(&bench, quantized.repeats, quantized.output),
        false => divergence::measure(&bench, &cases, quantized.precision.as_deref(), quantized.output),
    }
}
