//! `mlxcel-compile random-weights` as a separate program. It does not link LLVM, so `cargo xtask gpu-check` can copy it to
//! a machine without LLVM.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use mlxcel_artifacts::report;
use mlxcel_compiler_driver::{Cancel, ModelSource, write_random_weights};

/// Write a random checkpoint in Hugging Face's format
///
/// Its weights are those that `--weights random:SEED` puts into a bundle.
#[derive(Parser)]
struct Cli {
    /// Preset name, or path to a folder with a config.json
    #[arg(long)]
    model: String,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder to write; it must not exist
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let Cli { model, seed, out } = Cli::parse();
    match ModelSource::find(&model)
        .and_then(|source| write_random_weights(&source, seed, &out, &Cancel::new()))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, there is nowhere to report that.
            _ = writeln!(io::stderr(), "{}", report(&error));
            ExitCode::FAILURE
        }
    }
}
