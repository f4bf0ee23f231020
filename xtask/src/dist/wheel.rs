//! `cargo xtask wheel`: the Python package as a wheel, and whether it works where nothing else is installed.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{
    shell,
    toolchain::{
        setup::setup_for_build,
        venv::{self, Packages},
    },
    workspace::Workspace,
};

/// What builds wheels.
const MATURIN: &str = "maturin==1.16.0";

/// What the wheel runs in every environment that it is tried in.
const TRIAL: &str = "import sys, mlxcel
engine = mlxcel.Engine(sys.argv[1])
print(sys.version.split()[0], repr(engine.generate('And it came to pass', max_tokens=8).text))";

/// The options of `cargo xtask wheel`.
#[derive(Args)]
pub(crate) struct Wheel {
    /// Pythons to try the wheel with, each in an environment of its own; separated by commas
    #[arg(long, value_delimiter = ',', value_name = "PYTHON", default_value = "python3")]
    python: Vec<PathBuf>,
    /// A bundle of a model for each of them to run
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
}

/// Builds the wheel and tries it. Prints its path.
pub(crate) fn wheel(workspace: &Workspace, options: &Wheel) -> Result<()> {
    setup_for_build(workspace)?;
    let python =
        venv::python(workspace, &workspace.root.join("target/maturin"), Packages::Named(&[MATURIN]))?;
    let out = workspace.root.join("target/wheels");
    let mut command = workspace.command(python.with_file_name("maturin"));
    command.args(["build", "--release", "--out"]).arg(&out);
    command.arg("--manifest-path").arg(workspace.root.join("runtime/python/Cargo.toml"));
    shell::run_to_stderr(&mut command)?;
    let wheel = newest(&out)?;
    if let Some(bundle) = &options.bundle {
        let bundle = fs::canonicalize(bundle).with_context(|| bundle.display().to_string())?;
        for python in &options.python {
            eprint!("{}", try_in(workspace, python, &wheel, &bundle)?);
        }
    }
    Ok(writeln!(io::stdout(), "{}", wheel.display())?)
}

/// Returns the wheel that was made last.
fn newest(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let wheels = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wheels = wheels.filter(|path| path.extension().is_some_and(|end| end == "whl"));
    let newest = wheels.max_by_key(|path| fs::metadata(path).and_then(|found| found.modified()).ok());
    newest.with_context(|| format!("{}: found no wheel, expected that of maturin", folder.display()))
}

/// Installs the wheel into an environment without anything else, and runs the bundle. Returns what that printed.
fn try_in(workspace: &Workspace, python: &Path, wheel: &Path, bundle: &Path) -> Result<String> {
    let folder = workspace.root.join("target/wheel-trial");
    shell::run_to_stderr(workspace.command(python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let python = folder.join("bin/python3");
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    shell::run_to_stderr(workspace.command(&python).args(install).arg(wheel))?;
    let text = shell::output(workspace.command(&python).args(["-c", TRIAL]).arg(bundle))?;
    if text.is_empty() {
        bail!("{}: found no answer, expected one", python.display());
    }
    Ok(text)
}
