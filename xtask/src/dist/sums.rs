//! Digests and signatures of the files of a release.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::build::Build;
use crate::{shell, toolchain::wheels::sha256_of, workspace::Workspace};

/// The file with the digests, as `sha256sum --check` reads it.
const SUMS: &str = "SHA256SUMS";

/// Writes the digests of every file in `folder`. Returns the paths of all.
pub(super) fn write(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    let mut text = String::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("{}  {name}\n", sha256_of(file)?);
    }
    let sums = folder.join(SUMS);
    fs::write(&sums, text).with_context(|| sums.display().to_string())?;
    files.push(sums);
    Ok(files)
}

/// A secret key of minisign.
pub(super) struct Signer<'a> {
    workspace: &'a Workspace,
    key: PathBuf,
    /// The file with the key's password.
    password: Option<PathBuf>,
}

impl<'a> Signer<'a> {
    /// Finds the key.
    pub(super) fn new(workspace: &'a Workspace, key: &Path, password: Option<&Path>) -> Result<Self> {
        let here = std::env::current_dir()?;
        let (key, password) = (here.join(key), password.map(|file| here.join(file)));
        if !key.is_file() {
            bail!(
                "{}: found no file, expected a secret key of minisign\nhint: `mlxcel-bundle keygen` makes one",
                key.display()
            );
        }
        Ok(Self { workspace, key, password })
    }

    /// Writes `FILE.minisig` beside each file, the same bytes each time. Returns their paths.
    pub(super) fn sign(&self, files: &[PathBuf], version: &str) -> Result<Vec<PathBuf>> {
        let signed = |file: &PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            self.sign_one(file, &format!("mlxcel {version}, {name}"))?;
            Ok(file.with_file_name(format!("{name}.minisig")))
        };
        files.iter().map(signed).collect()
    }

    /// Signs a bundle, so that `--require-signature` takes it. Unlike those of `mlxcel-bundle sign`, which have noise in them
    /// against attacks by faults, its signatures are the same bytes each time.
    pub(super) fn sign_bundle(&self, build: &Build<'_>, bundle: &Path) -> Result<()> {
        self.sign_one(&bundle.join("manifest.toml"), &format!("mlxcel {}", build.version()))
    }

    /// Signs a file with a comment in place of the time, which minisign writes by default.
    fn sign_one(&self, file: &Path, comment: &str) -> Result<()> {
        let mut minisign = self.workspace.command("minisign");
        minisign.arg("-S").arg("-s").arg(&self.key).args(["-t", comment]).arg("-m").arg(file);
        match &self.password {
            Some(file) => minisign.stdin(fs::File::open(file).with_context(|| file.display().to_string())?),
            None => minisign.arg("-W"),
        };
        shell::run_to_stderr(&mut minisign).context("hint: apt-get install minisign")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_that_sha256sum_checks() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.tar.gz", "a.deb"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let files = write(folder.path()).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.deb", "b.tar.gz", SUMS]);
        let mut check = std::process::Command::new("sha256sum");
        check.args(["--check", "--strict", SUMS]).current_dir(folder.path());
        assert_eq!(shell::output(&mut check).unwrap(), "a.deb: OK\nb.tar.gz: OK\n");
        fs::write(folder.path().join("a.deb"), "other").unwrap();
        assert!(shell::output(&mut check).is_err());
    }

    #[test]
    fn a_key_that_is_not_there_is_named() {
        let workspace = Workspace::find();
        let Err(error) = Signer::new(&workspace, Path::new("/nowhere/a.key"), None) else {
            panic!("found it")
        };
        assert!(error.to_string().starts_with("/nowhere/a.key: found no file"), "{error}");
    }
}
