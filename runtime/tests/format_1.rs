//! A bundle made when 1 was the format: it opens, its signature is valid, and it runs.
#![cfg(feature = "iree")]
#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in their helpers")]

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use mlxcel_artifacts::{
    Bundle, BundleWriter, IREE_VERSION, Machine, PublicKey, best_target, check_iree_version, check_targets,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Imports the bundle into a folder.
fn imported(folder: &Path) -> Bundle {
    let path = fixture("format-1.tar");
    let to = Box::new(BundleWriter::create(&folder.join("bundle")).unwrap());
    Bundle::import(&mut File::open(&path).unwrap(), &path, to).unwrap()
}

#[test]
fn it_opens_and_its_signature_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = imported(folder.path());
    assert_eq!(bundle.manifest().format, 1);
    assert_eq!(Bundle::open(bundle.path()).unwrap().manifest(), bundle.manifest());
    let key = PublicKey::find(fixture("format-1.pub").to_str().unwrap()).unwrap();
    assert_eq!(bundle.verify_signature(&key).unwrap().comment, "a bundle of format 1");
}

#[test]
fn it_runs_with_the_version_of_iree_that_compiled_it() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = imported(folder.path());
    let manifest = bundle.manifest();
    let run = Command::new(env!("CARGO_BIN_EXE_mlxcel-run"))
        .arg(bundle.path())
        .arg("--self-test")
        .output()
        .unwrap();
    let output = String::from_utf8(run.stdout).unwrap() + &String::from_utf8(run.stderr).unwrap();
    // Runs if the CPU has the features of `cpu-x86-64-v3`.
    if best_target(&check_targets(manifest, &Machine::host())).is_some() {
        assert!(run.status.success() && output.contains("self-test passed"), "{output}");
    } else {
        assert!(!run.status.success() && output.contains("hint: "), "{output}");
    }
    // Code of another version is refused; the rest of the bundle can be used.
    assert_eq!(check_iree_version(manifest).is_ok(), manifest.compiler.version == IREE_VERSION);
}
