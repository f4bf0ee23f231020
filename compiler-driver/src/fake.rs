//! What unit tests share: compilers that misbehave.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Digest, IREE_VERSION};

use crate::{Target, target::Resolved, toolchain::Toolchain};

/// A link in `folder` to the compiler of `tests/fakes` that does as its `name` says.
pub(crate) fn compiler(folder: &Path, name: &str) -> PathBuf {
    let link = folder.join(name);
    symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/iree-compile"), &link).unwrap();
    link
}

/// The same as a toolchain.
pub(crate) fn toolchain(folder: &Path, name: &str) -> Toolchain {
    Toolchain {
        executable: compiler(folder, name),
        version: IREE_VERSION.to_owned(),
        digest: Digest::of(b"compiler"),
    }
}

/// How often it was called.
pub(crate) fn calls(compiler: &Path) -> usize {
    let log = format!("{}.log", compiler.display());
    fs::read_to_string(log).map_or(0, |log| log.lines().count())
}

/// A target with flags that a shell would misread.
pub(crate) fn target() -> Resolved {
    let cuda = Target::find("cuda").unwrap().resolve(
        &mlxcel_artifacts::Machine::host(),
        mlxcel_artifacts::Float::Bf16,
        mlxcel_artifacts::Quant::None,
    );
    Resolved { flags: vec!["--flag=a b".into(), "--other=it's".into(), "--plain=+x,y".into()], ..cuda }
}
