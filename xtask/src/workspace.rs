//! The folders of the checkout, and the environment of every command.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

/// Looks up an environment variable.
pub(crate) type Environment = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// The checkout, its toolchain and the environment.
pub(crate) struct Workspace {
    /// The folder with the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// `.toolchain`, or the folder that `MLXCEL_TOOLCHAIN` names.
    pub(crate) toolchain: PathBuf,
    /// What compiles the crates of the workspace in place of rustc: `RUSTC_WORKSPACE_WRAPPER`.
    pub(crate) wrapper: Option<PathBuf>,
    /// A field, so that a test can have its own environment.
    pub(crate) environment: Environment,
}

impl Workspace {
    /// Finds the checkout that this program was built in.
    pub(crate) fn find() -> Self {
        // cargo sets the variable for programs that it runs. The constant serves one that is started by hand.
        let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest).parent().unwrap_or(Path::new(".")).to_path_buf();
        Self::at(root, Box::new(|name| env::var_os(name)))
    }

    /// Returns the workspace in the folder `root`.
    pub(crate) fn at(root: PathBuf, environment: Environment) -> Self {
        let named = environment("MLXCEL_TOOLCHAIN").filter(|value| !value.is_empty());
        let toolchain = root.join(named.map_or_else(|| PathBuf::from(".toolchain"), PathBuf::from));
        Self { root, toolchain, wrapper: None, environment }
    }

    /// Returns a variable's value if it is not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        (self.environment)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// Returns a command that runs in the root and finds the toolchain.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("MLXCEL_TOOLCHAIN", &self.toolchain);
        command
    }

    /// Returns a cargo command. The arguments are separated by spaces.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = self.command(self.variable("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments.split_whitespace());
        if let Some(wrapper) = &self.wrapper {
            command.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
        }
        // What cargo told this program of its own package. Build scripts that watch it would run again after a plain `cargo`.
        for (name, _) in env::vars_os() {
            if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|part| name.to_string_lossy().starts_with(part)) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Returns the path of a release executable of this workspace.
    pub(crate) fn release_binary(&self, name: &str) -> std::io::Result<PathBuf> {
        // The folder of the release profile is beside that of this program's own.
        Ok(self.target()?.join("release").join(name))
    }

    /// Returns cargo's folder of what it builds.
    pub(crate) fn target(&self) -> std::io::Result<PathBuf> {
        let own = env::current_exe()?;
        Ok(own.ancestors().nth(2).map_or_else(|| self.root.join("target"), Path::to_path_buf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_not_told_of_the_package_xtask() {
        let command = Workspace::find().cargo("build --locked");
        let changed: Vec<_> = command.get_envs().collect();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(env::var_os(name).is_some() && changed.contains(&(name.as_ref(), None)), "{changed:?}");
        }
        assert!(!changed.contains(&("CARGO".as_ref(), None)));
    }
}
