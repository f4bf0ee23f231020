//! Virtual environments of Python for programs to compare with.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{shell, workspace::Workspace};

/// The file that lists the packages of a complete environment.
const READY: &str = ".ready";

/// Returns the Python of the virtual environment in `folder`, made with these packages if it was not.
pub(super) fn python(workspace: &Workspace, folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = folder.join("bin/python3");
    let ready = folder.join(READY);
    let list = packages.join("\n");
    if fs::read_to_string(&ready).is_ok_and(|found| found == list) {
        return Ok(python);
    }
    let hint = "hint: apt-get install python3-venv";
    shell::run_to_stderr(workspace.command("python3").args(["-m", "venv", "--clear"]).arg(folder))
        .with_context(|| format!("cannot make a virtual environment\n{hint}"))?;
    eprintln!("installing {}", packages.join(", "));
    let mut pip = workspace.command(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-cache-dir"]).args(packages);
    shell::run_to_stderr(&mut pip).with_context(|| {
        format!(
            "cannot install {}\nhint: df -h {} shows whether the disk is full, and pip's last lines name another cause",
            packages.join(", "),
            folder.display()
        )
    })?;
    fs::write(&ready, list).with_context(|| ready.display().to_string())?;
    Ok(python)
}
