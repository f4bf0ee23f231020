//! Virtual environments of Python, for programs to test with and to compare with.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::uv::uv;
use crate::{shell, workspace::Workspace};

/// The file that lists the packages of a complete environment.
const READY: &str = ".ready";

/// Returns the file of a part's packages, with their versions and digests.
fn lock(workspace: &Workspace, part: &str) -> PathBuf {
    workspace.root.join("xtask").join(part).with_extension("txt")
}

/// What is installed.
#[derive(Clone, Copy)]
pub(crate) enum Packages<'a> {
    /// Packages by name, in their newest version unless the name has one.
    Named(&'a [&'a str]),
    /// A file with a version and the digests of each package and of all that it needs.
    Locked(&'a Path),
}

impl Packages<'_> {
    /// Returns a text that differs if other packages would be installed.
    fn stamp(self) -> Result<String> {
        match self {
            Self::Named(names) => Ok(names.join("\n")),
            Self::Locked(file) => fs::read_to_string(file).with_context(|| file.display().to_string()),
        }
    }
}

/// Returns the Python of the virtual environment in `folder`, made with these packages if it was not.
pub(crate) fn python(workspace: &Workspace, folder: &Path, packages: Packages<'_>) -> Result<PathBuf> {
    let python = python_of(folder);
    let stamp = packages.stamp()?;
    if is_ready(folder, &stamp) {
        return Ok(python);
    }
    shell::run_to_stderr(uv(workspace, &["venv", "--quiet", "--clear", "--python", "python3"])?.arg(folder))
        .with_context(|| {
            format!(
                "cannot make a virtual environment in {}\nhint: df -h shows whether the disk is full",
                folder.display()
            )
        })?;
    // There is no cache that files could be linked to.
    let mut install = uv(workspace, &["pip", "install", "--quiet", "--link-mode", "copy", "--python"])?;
    install.arg(&python);
    let what = match packages {
        Packages::Named(names) => {
            install.args(names);
            names.join(", ")
        }
        Packages::Locked(file) => {
            install.args(["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r"]).arg(file);
            format!("the packages of {}", file.display())
        }
    };
    eprintln!("installing {what}");
    shell::run_to_stderr(&mut install).with_context(|| {
        format!(
            "cannot install {what}\nhint: df -h {} shows whether the disk is full, and uv's last lines name another cause",
            folder.display()
        )
    })?;
    fs::write(folder.join(READY), stamp).with_context(|| folder.display().to_string())?;
    Ok(python)
}

/// Makes the environment of a part of the toolchain.
pub(crate) fn install(workspace: &Workspace, part: &str) -> Result<()> {
    let lock = lock(workspace, part);
    python(workspace, &workspace.toolchain.join(part), Packages::Locked(&lock)).map(drop)
}

/// Returns the Python of a part, and whether the part has the packages that are pinned now.
pub(super) fn installed(workspace: &Workspace, part: &str) -> (PathBuf, bool) {
    let folder = workspace.toolchain.join(part);
    let lock = fs::read_to_string(lock(workspace, part));
    (python_of(&folder), lock.is_ok_and(|lock| is_ready(&folder, &lock)))
}

fn python_of(folder: &Path) -> PathBuf {
    folder.join("bin/python3")
}

fn is_ready(folder: &Path, stamp: &str) -> bool {
    fs::read_to_string(folder.join(READY)).is_ok_and(|found| found == stamp)
}
