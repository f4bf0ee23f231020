//! `mlxcel-compile random-weights` as a program of its own: the linker leaves LLVM out of it, so that it can be carried
//! to a machine on which nothing is installed. `cargo xtask gpu-check` does.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use mlxcel_artifacts::report;
use mlxcel_compiler_driver::{Cancel, ModelSource, write_random_weights};

/// Write the random checkpoint that `--weights random:SEED` puts into a bundle, in Hugging Face's form
#[derive(Parser)]
struct Cli {
    /// A preset's name, or a folder with a config.json
    #[arg(long)]
    model: String,
    /// The seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The folder to write; it must not exist
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
            // Nothing is left to tell it to when stderr is gone.
            _ = writeln!(io::stderr(), "{}", report(&error));
            ExitCode::FAILURE
        }
    }
}
