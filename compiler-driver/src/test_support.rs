//! Fake compilers for unit tests.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use mlxcel_artifacts::{Digest, IREE_VERSION};

use crate::{
    build::toolchain::Toolchain,
    target::{ResolvedTarget, Target},
};

/// Links the fake compiler of `tests/fakes` into `folder`. It acts on its `name`.
pub(crate) fn compiler(folder: &Path, name: &str) -> PathBuf {
    let link = folder.join(name);
    symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/iree-compile"), &link).unwrap();
    link
}

/// Links the fake compiler into `folder`, as a toolchain.
pub(crate) fn toolchain(folder: &Path, name: &str) -> Toolchain {
    Toolchain {
        executable: compiler(folder, name),
        version: IREE_VERSION.to_owned(),
        digest: Digest::of(b"compiler"),
        is_lean: false,
        time_limit: None,
    }
}

/// Counts the calls of a fake compiler.
pub(crate) fn calls(compiler: &Path) -> usize {
    let log = format!("{}.log", compiler.display());
    fs::read_to_string(log).map_or(0, |log| log.lines().count())
}

/// Returns the process that the fake compiler `forks` started, once it has.
pub(crate) fn started(compiler: &Path) -> Option<u32> {
    let text = fs::read_to_string(format!("{}.pid", compiler.display())).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

/// Checks that the process that `forks` started ends, and forgets it.
pub(crate) fn assert_ended(compiler: &Path) {
    let process = started(compiler).expect("it started none");
    // One that ended and that nobody has waited for yet has no command line.
    let runs = || fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty());
    for _ in 0..500 {
        if !runs() {
            fs::remove_file(format!("{}.pid", compiler.display())).unwrap();
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("process {process} runs");
}

/// Returns all targets. Panics with the report if a target's file is invalid.
pub(crate) fn all_targets() -> Vec<Target> {
    Target::all().unwrap_or_else(|error| panic!("{}", mlxcel_artifacts::report(&error)))
}

/// Returns a target whose flags need quoting in a shell.
pub(crate) fn target() -> ResolvedTarget {
    let cuda = Target::find("cuda").unwrap().resolve(
        &mlxcel_artifacts::Machine::host(),
        mlxcel_artifacts::Float::Bf16,
        mlxcel_artifacts::Quant::None,
    );
    ResolvedTarget { flags: vec!["--flag=a b".into(), "--other=it's".into(), "--plain=+x,y".into()], ..cuda }
}
