//! `mlxcel-bundle`: shows and verifies bundles.

mod show;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Result;
use clap::{Parser, Subcommand};
use mlxcel_artifacts::{Bundle, report};

/// Shows and verifies bundles of compiled models.
#[derive(Parser)]
#[command(name = "mlxcel-bundle", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Verifies a bundle and shows what is in it.
    Inspect {
        /// The bundle's folder.
        bundle: PathBuf,
        /// One JSON object: the manifest, and the bundle's path.
        #[arg(long)]
        json: bool,
    },
    /// Verifies the size and the digest of everything in a bundle.
    Verify {
        /// The bundle's folder.
        bundle: PathBuf,
    },
}

fn main() -> ExitCode {
    let output = run(&Options::parse().command);
    match output.and_then(|text| Ok(io::stdout().lock().write_all(text.as_bytes())?)) {
        Err(error) if !is_broken_pipe(&error) => {
            eprintln!("{}", report(error.as_ref()));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn run(command: &Command) -> Result<String> {
    Ok(match command {
        Command::Inspect { bundle, json: false } => show::text(&Bundle::open(bundle)?),
        Command::Inspect { bundle, json: true } => show::json(&Bundle::open(bundle)?)?,
        Command::Verify { bundle } => show::verdict(&Bundle::open(bundle)?),
    })
}

/// Whether the reader of our output has gone: `mlxcel-bundle inspect b | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
