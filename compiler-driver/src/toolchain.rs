//! Finding iree-compile and knowing which one it is.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use mlxcel_artifacts::{Digest, IREE_VERSION, Store};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Where iree-compile lies in the wheel `iree-base-compiler`.
const IN_WHEEL: &str = "iree/compiler/_mlir_libs/iree-compile";

/// The library that holds the compiler; the executable is a stub that loads it.
const LIBRARY: &str = "libIREECompiler.so";

/// An iree-compile of the right version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The executable.
    pub executable: PathBuf,
    /// IREE's version, `3.13.0`.
    pub version: String,
    /// blake3 over the version line, the executable and its library: what the compiler is, wherever it lies.
    pub digest: Digest,
}

/// What the store remembers of an executable, so that neither it nor its library is read on every call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    /// The version line: `3.13.0rc20261016 @ 89ece87b`.
    version: String,
    digest: Digest,
}

impl Toolchain {
    /// Finds iree-compile at `explicit`, else by the environment, and checks its version.
    ///
    /// `MLXCEL_IREE_COMPILE` names the executable; else the folder that `cargo xtask setup` fills (`MLXCEL_TOOLCHAIN`,
    /// else the workspace's `.toolchain`) is looked at, then `PATH`.
    ///
    /// # Errors
    /// There is none, it does not run, or it is of another version than the runtime.
    pub fn find(explicit: Option<&Path>, store: &Store) -> Result<Self, Error> {
        let executable = match explicit {
            Some(path) => existing(path)?,
            None => locate(&|name| env::var_os(name))?,
        };
        Self::identify(through_script(executable), store)
    }

    /// Checks the version of `executable`; asks `store` before running it.
    fn identify(executable: PathBuf, store: &Store) -> Result<Self, Error> {
        let files = files(&executable)?;
        let key = identity_key(&executable, &files)?;
        let identity = match store.get(&key)?.and_then(|path| read_identity(&path)) {
            Some(identity) => identity,
            None => {
                let identity = read_compiler(&executable, &files)?;
                remember(&identity, &key, store)?;
                identity
            }
        };
        let Identity { version: line, digest } = identity;
        let version = release(&line);
        if version != IREE_VERSION {
            return Err(Error::CompilerVersion {
                path: executable,
                found: if version.is_empty() { line } else { version.to_owned() },
                expected: IREE_VERSION,
            });
        }
        Ok(Self { version: version.to_owned(), executable, digest })
    }
}

/// Looks where the environment says. `variable` stands for the environment, so that a test can have one of its own.
fn locate(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
    if let Some(path) = variable("MLXCEL_IREE_COMPILE").filter(|path| !path.is_empty()) {
        return existing(Path::new(&path));
    }
    let installed = match variable("MLXCEL_TOOLCHAIN").filter(|path| !path.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        // Right for a program that was built in a checkout and still lies there.
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.toolchain"),
    };
    let installed = installed.join("iree").join(IN_WHEEL);
    if installed.is_file() {
        return Ok(installed);
    }
    let path = variable("PATH").unwrap_or_default();
    let on_path =
        env::split_paths(&path).map(|folder| folder.join("iree-compile")).find(|file| file.is_file());
    on_path.ok_or_else(|| Error::NoCompiler { looked: format!("{} and PATH", installed.display()) })
}

fn existing(path: &Path) -> Result<PathBuf, Error> {
    if path.is_file() {
        // Made absolute because it is run from another folder.
        std::path::absolute(path).map_err(Error::io("find", path))
    } else {
        Err(Error::NoCompiler { looked: path.display().to_string() })
    }
}

/// A Python environment's `bin/iree-compile` is a script that starts the executable in the wheel: takes that one, whose
/// library can be found.
fn through_script(executable: PathBuf) -> PathBuf {
    let wheel = || -> Option<PathBuf> {
        let library = executable.parent()?.parent()?.join("lib");
        let pythons = fs::read_dir(library).ok()?.flatten();
        let mut found = pythons.map(|python| python.path().join("site-packages").join(IN_WHEEL));
        found.find(|path| path.is_file())
    };
    if is_script(&executable) { wheel().unwrap_or(executable) } else { executable }
}

fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"#!"
}

/// The files that make up the compiler: the executable and, where it has one, its library.
fn files(executable: &Path) -> Result<Vec<PathBuf>, Error> {
    let executable = executable.canonicalize().map_err(Error::io("read", executable))?;
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let library = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    let library = library.into_iter().find(|path| path.is_file());
    Ok([Some(executable), library].into_iter().flatten().collect())
}

/// The store's key for what is known of `files`. Only a way to notice that a file is not the one read before: the
/// build key holds the digest of the contents.
fn identity_key(executable: &Path, files: &[PathBuf]) -> Result<Digest, Error> {
    // By the name it is called, too: what a wrapper is may depend on it.
    let mut text = format!("mlxcel compiler identity 1\n{}\n", executable.display());
    for path in files {
        let file = fs::metadata(path).map_err(Error::io("read", path))?;
        text += &format!(
            "{}\0{} {} {} {}.{} {}.{}\n",
            path.display(),
            file.dev(),
            file.ino(),
            file.size(),
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
        );
    }
    Ok(Digest::of(text.as_bytes()))
}

fn read_identity(path: &Path) -> Option<Identity> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn remember(identity: &Identity, key: &Digest, store: &Store) -> Result<(), Error> {
    let mut file = tempfile::NamedTempFile::new().map_err(Error::io("write", env::temp_dir()))?;
    serde_json::to_writer(&mut file, identity)
        .map_err(io::Error::from)
        .and_then(|()| file.flush())
        .map_err(Error::io("write", file.path()))?;
    store.put(key, file.path())?;
    Ok(())
}

/// Asks the compiler for its version and reads the whole of it.
fn read_compiler(executable: &Path, files: &[PathBuf]) -> Result<Identity, Error> {
    let output = Command::new(executable)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("run", executable))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.trim().strip_prefix("IREE compiler version "));
    let Some(line) = line.filter(|_| output.status.success()) else {
        let errors = String::from_utf8_lossy(&output.stderr);
        let found = text.lines().chain(errors.lines()).next().unwrap_or_default();
        return Err(Error::CompilerUnreadable {
            path: executable.to_owned(),
            found: found.chars().take(100).collect(),
        });
    };
    let mut parts = format!("{line}\n");
    for path in files {
        let (digest, _) = Digest::of_file(path).map_err(Error::io("read", path))?;
        let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        parts += &format!("{name} {digest}\n");
    }
    Ok(Identity { version: line.to_owned(), digest: Digest::of(parts.as_bytes()) })
}

/// `3.13.0` out of `3.13.0rc20261016 @ 89ece87b`: wheels of a release still carry the candidate's name.
fn release(line: &str) -> &str {
    let end = line.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(line.len());
    &line[..end]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::fake;

    fn refused(name: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Some(&folder.path().join("store"))).unwrap();
        let compiler = fake::compiler(folder.path(), name);
        let error = Toolchain::find(Some(&compiler), &store).unwrap_err();
        error.to_string().replace(&folder.path().display().to_string(), "…")
    }

    #[test]
    fn another_version_is_refused() {
        let hint = "hint: cargo xtask setup installs the right one, MLXCEL_IREE_COMPILE names another";
        assert_eq!(refused("older"), format!("…/older is version 3.12.1, expected 3.13.0\n{hint}"));
        assert_eq!(
            refused("talks"),
            format!(
                "`…/talks --version` printed `usage: something else`, expected `IREE compiler version …`\n{hint}"
            )
        );
        assert_eq!(
            refused("silent"),
            format!("`…/silent --version` printed ``, expected `IREE compiler version …`\n{hint}")
        );
    }

    #[test]
    fn a_known_executable_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Some(&folder.path().join("store"))).unwrap();
        let compiler = fake::compiler(folder.path(), "works");
        let first = Toolchain::find(Some(&compiler), &store).unwrap();
        assert_eq!((first.version.as_str(), fake::calls(&compiler)), ("3.13.0", 1));
        assert_eq!(Toolchain::find(Some(&compiler), &store).unwrap(), first);
        assert_eq!(fake::calls(&compiler), 1);
    }

    #[test]
    fn the_digest_is_that_of_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("a"), folder.path().join("b"));
        let mut digests = Vec::new();
        for (place, library) in [(&one, "library"), (&other, "library"), (&one, "another")] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join(LIBRARY), library).unwrap();
            let paths = [fake_copy(place), place.join(LIBRARY)];
            digests.push(read_compiler(&paths[0], &paths).unwrap().digest);
        }
        assert_eq!(digests[0], digests[1], "the place does not matter");
        assert_ne!(digests[0], digests[2], "the library does");
    }

    /// The compiler as a link of the same name in `folder`.
    fn fake_copy(folder: &Path) -> PathBuf {
        let path = folder.join("works");
        if path.exists() { path } else { fake::compiler(folder, "works") }
    }

    #[test]
    fn the_library_is_found_beside_the_executable_and_in_lib() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        for place in ["bin", "lib"] {
            fs::create_dir_all(folder.join(place)).unwrap();
        }
        let executable = folder.join("bin/iree-compile");
        fs::write(&executable, "").unwrap();
        assert_eq!(files(&executable).unwrap(), std::slice::from_ref(&executable));
        fs::write(folder.join("lib").join(LIBRARY), "").unwrap();
        assert_eq!(files(&executable).unwrap()[1], folder.join("bin/../lib").join(LIBRARY));
        fs::write(folder.join("bin").join(LIBRARY), "").unwrap();
        assert_eq!(files(&executable).unwrap()[1], folder.join("bin").join(LIBRARY));
    }

    #[test]
    fn a_python_script_stands_for_the_executable_of_its_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("bin/iree-compile");
        let wheel = folder.path().join("lib/python3.11/site-packages").join(IN_WHEEL);
        for path in [&script, &wheel] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(&script, "#!/usr/bin/python3\n").unwrap();
        assert_eq!(through_script(script.clone()), script);
        fs::write(&wheel, "\x7fELF").unwrap();
        assert_eq!(through_script(script), wheel);
    }

    #[test]
    fn places_are_tried_in_order() {
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
        let locate = |variables: &HashMap<&str, OsString>| locate(&|name| variables.get(name).cloned());

        let hint = "hint: cargo xtask setup installs the right one, MLXCEL_IREE_COMPILE names another";
        assert_eq!(
            locate(&variables).unwrap_err().to_string(),
            format!("found no iree-compile at {} and PATH\n{hint}", installed.display())
        );
        fs::write(at("bin/iree-compile"), "").unwrap();
        assert_eq!(locate(&variables).unwrap(), at("bin/iree-compile"));
        fs::write(&installed, "").unwrap();
        assert_eq!(locate(&variables).unwrap(), installed);
        fs::write(at("mine"), "").unwrap();
        variables.insert("MLXCEL_IREE_COMPILE", at("mine").into());
        assert_eq!(locate(&variables).unwrap(), at("mine"));
        // One that is named and not there is an error: another would not be the one asked for.
        variables.insert("MLXCEL_IREE_COMPILE", at("gone").into());
        assert_eq!(
            locate(&variables).unwrap_err().to_string(),
            format!("found no iree-compile at {}\n{hint}", at("gone").display())
        );
    }

    #[test]
    fn a_release_is_the_number_alone() {
        assert_eq!(release("3.13.0rc20261016 @ 89ece87b"), "3.13.0");
        assert_eq!(release("3.13.0"), "3.13.0");
        assert_eq!(release("(unknown)"), "");
    }
}
