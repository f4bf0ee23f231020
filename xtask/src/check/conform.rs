//! `cargo xtask conform`: StableHLO's own tests through the whole path, against the ledger.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{shell, tasks::WHOLE, toolchain::setup::setup, workspace::Workspace};

/// What to run.
#[derive(Args)]
pub(crate) struct Conform {
    /// Run all tests of this checkout of openxla/stablehlo instead of the committed ones
    #[arg(long, value_name = "FOLDER")]
    source: Option<PathBuf>,
    /// The target: `cpu`, `vulkan` on this machine's device, or `cuda` on the emulator
    #[arg(long, default_value = "cpu")]
    target: String,
    /// Run only tests whose names contain this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write what becomes of tests into the ledger instead of comparing it
    #[arg(long)]
    bless: bool,
}

/// Runs StableHLO's tests, and fails if one does something else than the ledger says.
pub(crate) fn conform(workspace: &Workspace, options: &Conform) -> Result<()> {
    let Conform { source, target, only, bless } = options;
    if let Some(folder) = source.as_ref().filter(|folder| !folder.join("stablehlo/testdata").is_dir()) {
        bail!(
            "{}: found no folder stablehlo/testdata, expected a checkout of openxla/stablehlo\n\
             hint: git clone --depth 1 https://github.com/openxla/stablehlo",
            folder.display()
        );
    }
    setup(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(&format!("build --quiet {WHOLE} --bins --example cuda")))?;
    let command = "test --quiet -p mlxcel-compiler-driver --test conform -- --nocapture every_test";
    let mut command = workspace.cargo(command);
    if let Some(folder) = source {
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        command.env("MLXCEL_CONFORM_SOURCE", folder);
    }
    command.env("MLXCEL_CONFORM_TARGET", target);
    if let Some(only) = only {
        command.env("MLXCEL_CONFORM_ONLY", only);
    }
    if *bless {
        command.env("MLXCEL_CONFORM_BLESS", "1");
    }
    shell::run(&mut command)
}
