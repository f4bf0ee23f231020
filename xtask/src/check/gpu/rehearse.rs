//! `cargo xtask gpu-check --rehearse`: runs every stage of the check without a GPU.
//!
//! `runtime/emulator` stands for the driver, so that tokens are those of the kernels' PTX, and times mean nothing.

use std::fs;

use anyhow::{Context as _, Result};

use super::{kit::REHEARSAL, pack::pack};
use crate::{
    shell,
    toolchain::{
        setup::setup,
        venv::{self, Packages},
    },
    workspace::Workspace,
};

/// What is measured beside ours, on the CPU: the versions whose answers the oracle records, and what writes GGUF files.
const PEERS: [&str; 3] = ["transformers==5.23.0", "torch==2.15.0", "gguf==0.19.0"];

/// Writes a small folder and runs its script on the emulated driver.
pub(super) fn rehearse(workspace: &Workspace, with_peers: bool) -> Result<()> {
    setup(workspace)?;
    let folder = workspace.root.join("target/gpu-rehearsal");
    pack(workspace, &folder, &REHEARSAL)?;
    let driver = folder.join("driver");
    fs::create_dir_all(&driver).with_context(|| driver.display().to_string())?;
    let library = driver.join("libcuda.so");
    fs::copy(workspace.target()?.join("debug/examples/libcuda.so"), &library)
        .with_context(|| library.display().to_string())?;
    let mut run = workspace.command(folder.join("run.sh"));
    run.env("LD_LIBRARY_PATH", &driver).env("MLXCEL_PEER_DEVICE", "cpu");
    if with_peers {
        let python = workspace.root.join("target/gpu-peers");
        run.env("MLXCEL_PEER_PYTHON", venv::python(workspace, &python, Packages::Named(&PEERS))?);
    }
    Err(shell::exec(&mut run))
}
