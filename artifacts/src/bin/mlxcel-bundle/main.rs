//! `mlxcel-bundle`: inspects, verifies, signs, moves and stores bundles.

mod archive;
mod arguments;
mod check;
mod command;
mod copy;
mod diff;
mod inspect;
mod outcome;
#[cfg(feature = "registry")]
mod progress;
#[cfg(feature = "registry")]
mod registry;
mod sign;
mod size;
mod store;
mod verify;

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::Parser;
use mlxcel_artifacts::{parse_arguments, report};

use crate::{arguments::StoreArguments, command::Command, outcome::Outcome};

/// Inspect, verify, sign, move and store bundles of compiled models
///
/// Every command that takes a BUNDLE accepts a folder or a name in the store.
#[derive(Parser)]
#[command(name = "mlxcel-bundle", version)]
struct Options {
    #[command(flatten)]
    store: StoreArguments,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let Options { store, command } = parse_arguments(env::args_os());
    match command.run(&store).and_then(print) {
        Ok(status) => status.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", report(error.as_ref()));
            command.failure_status().into()
        }
    }
}

/// Writes a command's text to stdout and returns its exit status.
fn print(Outcome { text, status }: Outcome) -> Result<u8> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written
        .context("cannot write to standard output\nhint: free some disk space, or write to another disk")?;
    Ok(status)
}

/// Returns whether the reader of stdout has closed it, as in `mlxcel-bundle inspect b | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
