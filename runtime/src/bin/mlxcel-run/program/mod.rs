//! Runs the functions of a StableHLO program.

mod differences;
mod inputs;
mod literal;
pub(crate) mod options;
mod outputs;
mod run;

use std::process::ExitCode;

use anyhow::{Result, bail};
use mlxcel_artifacts::Bundle;

use crate::options::Options;

/// Runs the function that the options name, or replays the recorded calls.
pub(crate) fn run(options: &Options, bundle: Bundle) -> Result<ExitCode> {
    bundle.manifest().functions()?;
    if options.asks_for_a_model() {
        bundle.manifest().model_spec()?;
    }
    if options.json {
        bail!(
            "found --json with a program, expected --output\nhint: --output @results.npz writes the results"
        );
    }
    run::run(options, bundle)
}
