//! `cargo xtask wheel`: the Python package as a wheel, and whether it works where nothing else is installed.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::{
    build::{Build, PROFILE},
    bundles,
    tree::DEMO,
};
use crate::{
    files::{copy_file, copy_folder},
    shell,
    toolchain::{
        setup::setup_for_build,
        uv::uv,
        venv::{self, Packages},
    },
    workspace::Workspace,
};

/// What builds wheels.
const MATURIN: &str = "maturin==1.16.0";

/// The programs in the wheel, which pip puts on the PATH. `mlxcel.ray` starts servers.
const PROGRAMS: [&str; 4] = ["mlxcel-run", "mlxcel-serve", "mlxcel-bundle", "mlxcel-pack"];

/// What the wheel runs in every environment that it is tried in.
const TRIAL: &str = "import sys, mlxcel
engine = mlxcel.Engine(sys.argv[1])
print(sys.version.split()[0], repr(engine.generate('And it came to pass', max_tokens=8).text))";

/// The options of `cargo xtask wheel`.
#[derive(Args)]
pub(crate) struct Wheel {
    /// Pythons to try the wheel with, each in an environment of its own; separated by commas
    #[arg(long, value_delimiter = ',', value_name = "PYTHON")]
    python: Vec<PathBuf>,
}

/// Builds the wheel and tries it. Prints its path.
pub(crate) fn wheel(workspace: &Workspace, options: &Wheel) -> Result<()> {
    setup_for_build(workspace)?;
    let build = Build::new(workspace)?;
    build.programs()?;
    let demo = bundles::demo(&build, None)?;
    let wheel = write(&build, &demo, &workspace.root.join("target/wheels"))?;
    for python in &options.python {
        eprint!("{}", try_in(workspace, python, &wheel, &demo)?);
    }
    Ok(writeln!(io::stdout(), "{}", wheel.display())?)
}

/// Writes the wheel, with programs and the demo model in it.
pub(super) fn write(build: &Build<'_>, demo: &Path, out: &Path) -> Result<PathBuf> {
    let Build { workspace, .. } = build;
    let data = Data::new(build, demo)?;
    let environment = workspace.root.join("target/maturin");
    let python = venv::python(workspace, &environment, Packages::Named(&[MATURIN]))?;
    let mut command = workspace.command(python.with_file_name("maturin"));
    command.args(["build", "--locked", "--profile", PROFILE, "--target", &build.triple()]);
    command.arg("--manifest-path").arg(workspace.root.join("runtime/python/Cargo.toml"));
    shell::run_to_stderr(build.reproducibly(command.arg("--out").arg(out))?)?;
    drop(data);
    newest(out)
}

/// What pip puts beside the package, in the folder where maturin looks. Dropping it removes the folder.
struct Data(PathBuf);

impl Data {
    fn new(build: &Build<'_>, demo: &Path) -> Result<Self> {
        let data = Self(build.workspace.root.join("runtime/python/mlxcel.data"));
        data.remove();
        for program in PROGRAMS {
            copy_file(&build.built(program), &data.0.join("scripts").join(program), 0o755)?;
        }
        copy_folder(demo, &data.0.join("data").join(DEMO))?;
        Ok(data)
    }

    fn remove(&self) {
        if self.0.exists()
            && let Err(error) = fs::remove_dir_all(&self.0)
        {
            eprintln!("warning: cannot remove {}: {error}", self.0.display());
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.remove();
    }
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
    shell::run_to_stderr(
        uv(workspace, &["venv", "--quiet", "--clear", "--python"])?.arg(python).arg(&folder),
    )?;
    let python = folder.join("bin/python3");
    let mut install = uv(workspace, &["pip", "install", "--quiet", "--python"])?;
    shell::run_to_stderr(install.arg(&python).arg(wheel))?;
    let text = shell::output(workspace.command(&python).args(["-c", TRIAL]).arg(bundle))?;
    if text.is_empty() {
        bail!("{}: found no answer, expected one", python.display());
    }
    let mut program = workspace.command(folder.join("bin/mlxcel-run"));
    shell::output(program.args(["demo", "-p", "And it came to pass", "-n", "8"])).map(|_| text)
}
