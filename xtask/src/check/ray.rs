//! `cargo xtask ray`: a cluster of Ray with several nodes on this machine, in full.

use anyhow::Result;
use clap::Args;

use crate::{shell, tasks::WHOLE, toolchain::setup::setup, workspace::Workspace};

/// What to run.
#[derive(Args)]
pub(crate) struct Ray {
    /// Run only tests whose names this expression of pytest selects
    #[arg(long, value_name = "EXPRESSION")]
    only: Option<String>,
}

/// Runs the tests of `mlxcel.ray` with all prompts and all of their kills. Prints what each found.
pub(crate) fn ray(workspace: &Workspace, options: &Ray) -> Result<()> {
    setup(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(&format!("build --quiet {WHOLE}")))?;
    // With the features of that build, or dependencies are compiled again.
    let tests = "--test bundles -- --nocapture python::ray_passes";
    let mut command = workspace.cargo(&format!("test --quiet {WHOLE} {tests}"));
    command.env("MLXCEL_RAY", "full");
    if let Some(only) = &options.only {
        command.env("MLXCEL_RAY_ONLY", only);
    }
    shell::run(&mut command)
}
