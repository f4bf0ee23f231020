//! Identifies iree-compile.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use mlxcel_artifacts::{Digest, FileIdentity, IREE_VERSION, Store};
use serde::{Deserialize, Serialize};

use crate::{
    build::compiler_location::{CompilerLocation, is_script},
    error::Error,
};

/// Name of the library that contains the compiler. The executable only loads it.
const LIBRARY: &str = "libIREECompiler.so";

/// An iree-compile of the required version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// Path of the executable.
    pub executable: PathBuf,
    /// Version of IREE, `3.13.0`.
    pub version: String,
    /// BLAKE3 digest of the version line, the executable and its library. Does not depend on their path.
    pub digest: Digest,
    /// Whether it neither verifies the module between its passes nor starts threads.
    pub is_lean: bool,
    /// The longest time that it may take to read a program, or to compile one for a target.
    pub time_limit: Option<Duration>,
}

/// Identity of an executable, kept in the store so that hundreds of megabytes are not hashed on every call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    /// Version line: `3.13.0rc20261016 @ 89ece87b`.
    version: String,
    digest: Digest,
}

impl Toolchain {
    /// Finds iree-compile and checks its version. Does not run it if `store` knows it, unless it is a script.
    ///
    /// # Errors
    /// It is not found, does not run, or has another version than the runtime.
    pub fn find(location: &CompilerLocation, store: &Store) -> Result<Self, Error> {
        let executable = location.find()?;
        let files = files(&executable)?;
        // What a script starts may be replaced while the script stays as it is.
        let identity = match is_script(&executable) {
            true => read_compiler(&executable, &files)?,
            false => known_or_read(&executable, &files, store)?,
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
        Ok(Self { version: version.to_owned(), executable, digest, is_lean: false, time_limit: None })
    }
}

/// Returns the identity that `store` knows, otherwise asks the compiler and remembers it.
fn known_or_read(executable: &Path, files: &[PathBuf], store: &Store) -> Result<Identity, Error> {
    let key = identity_key(executable, files)?;
    if let Some(identity) = store.get(&key)?.and_then(|path| read_identity(&path)) {
        return Ok(identity);
    }
    let identity = read_compiler(executable, files)?;
    remember(&identity, &key, store)?;
    Ok(identity)
}

/// Returns the files of the compiler: the executable and, if there is one, its library.
fn files(executable: &Path) -> Result<Vec<PathBuf>, Error> {
    let executable = executable.canonicalize().map_err(Error::io("read", executable))?;
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let library = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    let library = library.into_iter().find(|path| path.is_file());
    Ok([Some(executable), library].into_iter().flatten().collect())
}

/// Returns the store's key for the identity of `files`.
///
/// It only shows whether a file is the one that was hashed before. Build keys contain the digest of the contents.
fn identity_key(executable: &Path, files: &[PathBuf]) -> Result<Digest, Error> {
    // Includes the path as given: a wrapper may act on the name it is called by.
    let mut text = format!("mlxcel compiler identity 1\n{}\n", executable.display());
    for path in files {
        let file = fs::metadata(path).map_err(Error::io("read", path))?;
        text += &format!("{}\0{}\n", path.display(), FileIdentity::of(&file));
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

/// Runs the compiler for its version, and hashes its files.
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

/// Returns the release in a version line: `3.13.0` of `3.13.0rc20261016 @ 89ece87b`.
///
/// Wheels of a release keep the name of its release candidate.
fn release(line: &str) -> &str {
    let end = line.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(line.len());
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    fn refused(name: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("store"), None).unwrap();
        let compiler = test_support::compiler(folder.path(), name);
        let location = CompilerLocation::Executable(compiler);
        let error = Toolchain::find(&location, &store).unwrap_err();
        error.to_string().replace(&folder.path().display().to_string(), "…")
    }

    #[test]
    fn another_version_is_refused() {
        let hint = "hint: `pip install iree-base-compiler==3.13.0` (in a checkout `cargo xtask setup`), or set MLXCEL_IREE_COMPILE to its path";
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
    fn a_known_executable_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("store"), None).unwrap();
        // This one cannot be run at all.
        let compiler = folder.path().join("iree-compile");
        fs::write(&compiler, "\x7fELF").unwrap();
        let location = CompilerLocation::Executable(compiler.clone());
        assert!(matches!(Toolchain::find(&location, &store), Err(Error::Io { doing: "run", .. })));
        let key = identity_key(&compiler, &files(&compiler).unwrap()).unwrap();
        let digest = Digest::of(b"compiler");
        remember(&Identity { version: "3.13.0 @ 89ece87b".into(), digest }, &key, &store).unwrap();
        let found = Toolchain::find(&location, &store).unwrap();
        assert_eq!((found.version.as_str(), found.digest), ("3.13.0", digest));
    }

    #[test]
    fn a_script_is_run_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("store"), None).unwrap();
        let compiler = test_support::compiler(folder.path(), "works");
        let location = CompilerLocation::Executable(compiler.clone());
        let first = Toolchain::find(&location, &store).unwrap();
        assert_eq!((first.version.as_str(), test_support::calls(&compiler)), ("3.13.0", 1));
        assert_eq!(Toolchain::find(&location, &store).unwrap(), first);
        assert_eq!(test_support::calls(&compiler), 2);
    }

    #[test]
    fn the_digest_depends_on_contents_only() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("a"), folder.path().join("b"));
        let mut digests = Vec::new();
        for (place, library) in [(&one, "library"), (&other, "library"), (&one, "another")] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join(LIBRARY), library).unwrap();
            let paths = [fake_copy(place), place.join(LIBRARY)];
            digests.push(read_compiler(&paths[0], &paths).unwrap().digest);
        }
        assert_eq!(digests[0], digests[1], "the path does not matter");
        assert_ne!(digests[0], digests[2], "the library does");
    }

    /// Returns a link to the fake compiler in `folder`, always by the same name.
    fn fake_copy(folder: &Path) -> PathBuf {
        let path = folder.join("works");
        if path.exists() { path } else { test_support::compiler(folder, "works") }
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
    fn a_release_is_a_number_without_suffix() {
        assert_eq!(release("3.13.0rc20261016 @ 89ece87b"), "3.13.0");
        assert_eq!(release("3.13.0"), "3.13.0");
        assert_eq!(release("(unknown)"), "");
    }
}
