//! Locates iree-compile.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::error::Error;

/// Path of iree-compile in the wheel `iree-base-compiler`.
const IN_WHEEL: &str = "iree/compiler/_mlir_libs/iree-compile";

/// Folders of packages in a Python's folder. Debian calls its own the second.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// Where to look for iree-compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompilerLocation {
    /// At this path.
    Executable(PathBuf),
    /// In two places.
    Search {
        /// The folder that `cargo xtask setup` fills, if there is one. It is searched first.
        toolchain: Option<PathBuf>,
        /// A list of folders, as in the environment variable `PATH`.
        path: OsString,
    },
}

impl CompilerLocation {
    /// Reads the location from the environment.
    ///
    /// `MLXCEL_IREE_COMPILE` is the path of the executable. If it is not set, `MLXCEL_TOOLCHAIN` (by default the
    /// `.toolchain` of the checkout that this program was built in) and `PATH` are searched.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_variables(&|name| env::var_os(name), env::current_exe().ok().as_deref())
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>, program: Option<&Path>) -> Self {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        if let Some(path) = variable("MLXCEL_IREE_COMPILE") {
            return Self::Executable(path.into());
        }
        // Programs are built into the checkout. What is released must not have a path of that checkout in it.
        let of_checkout = || {
            let mut folders = program?.ancestors().map(|folder| folder.join(".toolchain"));
            folders.find(|folder| folder.is_dir())
        };
        let toolchain = variable("MLXCEL_TOOLCHAIN").map(PathBuf::from).or_else(of_checkout);
        Self::Search { toolchain, path: variable("PATH").unwrap_or_default() }
    }

    /// Finds the executable.
    pub(crate) fn find(&self) -> Result<PathBuf, Error> {
        let executable = match self {
            Self::Executable(path) if path.is_file() => path.clone(),
            Self::Executable(path) => return Err(Error::NoCompiler { searched: path.display().to_string() }),
            Self::Search { toolchain, path } => {
                let installed = toolchain.as_ref().map(|folder| folder.join("iree").join(IN_WHEEL));
                let on_path = env::split_paths(path).map(|folder| folder.join("iree-compile"));
                let mut candidates = installed.iter().cloned().chain(on_path);
                candidates.find(|file| file.is_file()).ok_or_else(|| Error::NoCompiler {
                    searched: match &installed {
                        Some(installed) => format!("{} and PATH", installed.display()),
                        None => "PATH".into(),
                    },
                })?
            }
        };
        // Absolute, because it runs in another folder.
        let executable = std::path::absolute(&executable).map_err(Error::io("find", executable))?;
        Ok(through_script(executable))
    }
}

/// Returns the executable that a script starts: a Python environment's `bin/iree-compile` starts the one in the wheel.
///
/// The compiler's library lies beside that executable.
fn through_script(executable: PathBuf) -> PathBuf {
    if !is_script(&executable) {
        return executable;
    }
    // A link to the script of an environment lies in another folder than the environment.
    let script = executable.canonicalize().ok();
    script.as_deref().and_then(in_wheel).or_else(|| in_wheel(&executable)).unwrap_or(executable)
}

/// Returns the executable in the wheel that a Python environment's script is of.
fn in_wheel(script: &Path) -> Option<PathBuf> {
    let library = script.parent()?.parent()?.join("lib");
    let pythons = fs::read_dir(library).ok()?.flatten();
    let mut found =
        pythons.flat_map(|python| PACKAGES.map(|packages| python.path().join(packages).join(IN_WHEEL)));
    found.find(|path| path.is_file())
}

/// Returns whether a file is a script. It does not show which compiler it starts.
pub(crate) fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"#!"
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_python_script_leads_to_the_executable_of_its_wheel() {
        for packages in ["site-packages", "dist-packages"] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().canonicalize().unwrap();
            let script = folder.join("env/bin/iree-compile");
            let wheel = folder.join("env/lib/python3.11").join(packages).join(IN_WHEEL);
            let link = folder.join("bin/iree-compile");
            for path in [&script, &wheel, &link] {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            fs::write(&script, "#!/usr/bin/python3\n").unwrap();
            symlink(&script, &link).unwrap();
            assert_eq!(through_script(script.clone()), script);
            assert_eq!(through_script(link.clone()), link);
            fs::write(&wheel, "\x7fELF").unwrap();
            assert_eq!(through_script(script), wheel);
            assert_eq!(through_script(link), wheel, "{packages}");
            assert_eq!(through_script(wheel.clone()), wheel);
        }
    }

    #[test]
    fn locations_are_tried_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let installed = at("toolchain/iree").join(IN_WHEEL);
        fs::create_dir_all(installed.parent().unwrap()).unwrap();
        fs::create_dir_all(at("bin")).unwrap();
        let mut variables: HashMap<&str, OsString> = HashMap::from([
            ("PATH", env::join_paths([at("nowhere"), at("bin")]).unwrap()),
            ("MLXCEL_TOOLCHAIN", at("toolchain").into()),
            ("MLXCEL_IREE_COMPILE", "".into()),
        ]);
        let program = at("target/release/mlxcel-compile");
        let locate = |variables: &HashMap<&str, OsString>| {
            CompilerLocation::from_variables(&|name| variables.get(name).cloned(), Some(&program)).find()
        };

        let hint = "hint: `pip install iree-base-compiler==3.13.0` (in a checkout `cargo xtask setup`), or set MLXCEL_IREE_COMPILE to its path";
        assert_eq!(
            locate(&variables).unwrap_err().to_string(),
            format!("found no iree-compile at {} and PATH\n{hint}", installed.display())
        );
        assert!(hint.contains(mlxcel_artifacts::IREE_VERSION));
        fs::write(at("bin/iree-compile"), "").unwrap();
        assert_eq!(locate(&variables).unwrap(), at("bin/iree-compile"));
        fs::write(&installed, "").unwrap();
        assert_eq!(locate(&variables).unwrap(), installed);
        fs::write(at("mine"), "").unwrap();
        variables.insert("MLXCEL_IREE_COMPILE", at("mine").into());
        assert_eq!(locate(&variables).unwrap(), at("mine"));
        // Naming a file that does not exist is an error: another compiler is not the one asked for.
        variables.insert("MLXCEL_IREE_COMPILE", at("gone").into());
        assert_eq!(
            locate(&variables).unwrap_err().to_string(),
            format!("found no iree-compile at {}\n{hint}", at("gone").display())
        );
        // Without a variable, the toolchain is that of the checkout where the program lies.
        let mut variables = HashMap::new();
        assert_eq!(
            locate(&variables).unwrap_err().to_string(),
            format!("found no iree-compile at PATH\n{hint}")
        );
        fs::rename(at("toolchain"), at(".toolchain")).unwrap();
        let installed = at(".toolchain/iree").join(IN_WHEEL);
        assert_eq!(locate(&variables).unwrap(), installed);
        variables.insert("MLXCEL_TOOLCHAIN", at("gone").into());
        assert!(locate(&variables).is_err());
    }
}
