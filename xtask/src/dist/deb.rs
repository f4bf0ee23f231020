//! The Debian package, which cargo-deb makes of the laid out folder. What is in it is said in runtime/Cargo.toml.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::build::Build;
use crate::{shell, workspace::Workspace};

/// The version of cargo-deb.
const CARGO_DEB: &str = "3.8.0";

/// Writes `mlxcel_VERSION-1_ARCH.deb`.
pub(super) fn write(build: &Build<'_>, out: &Path) -> Result<()> {
    let mut command = build.workspace.command(cargo_deb(build.workspace)?);
    // Cargo.toml names one folder for all architectures.
    let named = build.work().join("mlxcel");
    _ = fs::remove_file(&named);
    symlink(build.trees().join("mlxcel"), &named).with_context(|| named.display().to_string())?;
    command.args(["--package", "mlxcel-runtime", "--no-build", "--no-strip", "--locked"]);
    command.args(["--target", &build.triple(), "--output"]).arg(out);
    shell::run_to_stderr(command.env("SOURCE_DATE_EPOCH", &build.epoch)).context("cargo-deb failed")
}

/// Returns the path of cargo-deb, which is installed into the toolchain's folder if it is not there.
fn cargo_deb(workspace: &Workspace) -> Result<PathBuf> {
    let root = workspace.toolchain.join(format!("cargo-deb-{CARGO_DEB}"));
    let program = root.join("bin/cargo-deb");
    if !program.is_file() {
        eprintln!("installing cargo-deb {CARGO_DEB}");
        let mut cargo =
            workspace.cargo(&format!("install --quiet --locked cargo-deb --version {CARGO_DEB} --root"));
        shell::run_to_stderr(cargo.arg(&root).env("CARGO_TARGET_DIR", root.join("build")))?;
        fs::remove_dir_all(root.join("build"))?;
    }
    Ok(program)
}
