//! Where things lie, and the environment that every command sees.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

/// Looks up a variable.
pub(crate) type Environment = Box<dyn Fn(&str) -> Option<OsString>>;

/// The checkout, its toolchain and the environment.
pub(crate) struct Workspace {
    /// The folder with the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// `.toolchain`, or what `MLXCEL_TOOLCHAIN` names.
    pub(crate) toolchain: PathBuf,
    /// The environment, a field so that a test can have its own.
    pub(crate) environment: Environment,
}

impl Workspace {
    pub(crate) fn find() -> Self {
        // cargo sets the variable for what it runs; the constant serves an executable that is started by hand.
        let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest).parent().unwrap_or(Path::new(".")).to_path_buf();
        Self::at(root, Box::new(|name| env::var_os(name)))
    }

    pub(crate) fn at(root: PathBuf, environment: Environment) -> Self {
        let named = environment("MLXCEL_TOOLCHAIN").filter(|value| !value.is_empty());
        let toolchain = root.join(named.map_or_else(|| PathBuf::from(".toolchain"), PathBuf::from));
        Self { root, toolchain, environment }
    }

    /// A variable that is set to something.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        (self.environment)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// A program run in the root, that finds the toolchain.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("MLXCEL_TOOLCHAIN", &self.toolchain);
        command
    }

    /// cargo with the arguments, which are separated by blanks.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = self.command(self.variable("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments.split_whitespace());
        command
    }

    /// A release executable of this workspace, which lies beside the folder of this program's own profile.
    pub(crate) fn release(&self, name: &str) -> std::io::Result<PathBuf> {
        let own = env::current_exe()?;
        let target = own.ancestors().nth(2).map_or_else(|| self.root.join("target"), Path::to_path_buf);
        Ok(target.join("release").join(name))
    }
}
