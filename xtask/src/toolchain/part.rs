//! What is known of each part of the toolchain.

use std::path::{Path, PathBuf};

use crate::{toolchain::iree::IREE_VERSION, workspace::Workspace};

/// Where Debian installs LLVM 22, which `.cargo/config.toml` names too.
pub(crate) const LLVM_PREFIX: &str = "/usr/lib/llvm-22";
pub(crate) const LIBCLANG: &str = "/usr/lib/llvm-22/lib";

/// One part of the toolchain.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// The requirement, worded to follow "expected". `{IREE}` stands for the pinned version.
    pub(crate) expected: &'static str,
    pub(crate) need: Need,
    pub(crate) supply: Supply,
    /// The variables that make the build use another installation.
    pub(crate) variables: &'static [Variable],
    pub(crate) detect: fn(&Workspace) -> Detection,
}

/// An environment variable that names a part.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    /// Its value in `.cargo/config.toml`.
    pub(crate) default: Option<&'static str>,
}

/// The work that fails without a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Build,
    Tests,
    /// Only fetching other parts.
    Setup,
}

/// Where `setup` gets a part from.
pub(crate) enum Supply {
    /// Debian packages.
    Debian(&'static [&'static str]),
    /// A Debian package, unpacked into the toolchain's folder: installing it would start a service.
    Unpacked(&'static str),
    /// The wheels of `toolchain.toml` whose `part` is this name.
    Wheels(&'static str),
    /// A virtual environment of Python with this name, with the packages of the file `NAME.txt` beside this crate.
    Venv(&'static str),
    /// Cargo, with the other crates.
    Cargo,
}

/// The result of looking for a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Detection {
    Found { version: String, path: PathBuf },
    WrongVersion { found: String, path: PathBuf },
    Missing { path: PathBuf },
}

impl Detection {
    pub(crate) fn is_found(&self) -> bool {
        matches!(self, Self::Found { .. })
    }
}

impl Part {
    /// Returns the requirement, worded to follow "expected".
    pub(crate) fn expected(&self) -> String {
        self.expected.replace("{IREE}", IREE_VERSION)
    }

    /// Lists the variables that are set to another value than their default.
    pub(crate) fn overrides(&self, workspace: &Workspace) -> Vec<&'static str> {
        let is_set = |variable: &&Variable| {
            let value = workspace.variable(variable.name);
            value.is_some_and(|value| Some(value.as_path()) != variable.default.map(Path::new))
        };
        self.variables.iter().filter(is_set).map(|variable| variable.name).collect()
    }
}
