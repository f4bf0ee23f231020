//! `cargo xtask gpu-check`: compares generated tokens on a GPU with the expected ones.
//!
//! The machine with the GPU needs neither compiler nor cargo: a folder carries executables, bundles, expected tokens and
//! `run.sh`, which says first what is wrong with the machine, runs all cases, and measures a model of full shape beside what was
//! predicted and beside other programs.

mod kit;
mod pack;
mod predictions;
mod rehearse;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use self::{
    kit::WHOLE,
    pack::{pack, size},
};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

/// The largest size of the folder, which may be copied over slow networks: a fifth of that as a compressed archive.
const LIMIT: u64 = 128 << 20;

/// The options of `cargo xtask gpu-check`.
#[derive(Args)]
pub(crate) struct GpuCheck {
    /// Only write the folder, to be copied to a machine with a GPU and checked there by `FOLDER/run.sh`
    #[arg(long, value_name = "FOLDER")]
    pack: Option<PathBuf>,
    /// Write a small folder and run all of it without a GPU, on the emulated driver: minutes, and no speeds
    #[arg(long, conflicts_with = "pack")]
    rehearse: bool,
    /// Measure transformers in the rehearsal too, which installs it and torch: 5 GB
    #[arg(long, requires = "rehearse")]
    peers: bool,
}

/// Writes the folder. Without `--pack`, runs the check on this machine.
pub(crate) fn gpu_check(workspace: &Workspace, check: &GpuCheck) -> Result<()> {
    if check.rehearse {
        return rehearse::rehearse(workspace, check.peers);
    }
    let folder = match &check.pack {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => workspace.root.join("target/gpu-check"),
    };
    setup(workspace)?;
    pack(workspace, &folder, &WHOLE)?;
    let bytes = size(&folder)?;
    if bytes > LIMIT {
        // Results are beside the bundles.
        bail!(
            "{}: found {bytes} bytes, expected at most {LIMIT}\nhint: fewer cases in {}",
            folder.display(),
            file!()
        );
    }
    if check.pack.is_some() {
        return shell::print(&format!("{}\n", folder.display()));
    }
    Err(shell::exec(&mut workspace.command(folder.join("run.sh"))))
}

#[cfg(test)]
mod tests;
