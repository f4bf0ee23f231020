//! A bundle made when 1 was the format: it opens, its signature is valid, and it no longer runs.
#![cfg(feature = "iree")]
#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in their helpers")]

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use mlxcel_artifacts::{Bundle, BundleWriter, Machine, Manifest, PublicKey, check_targets};

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
fn it_is_intact_and_its_needs_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = imported(folder.path());
    let manifest = bundle.manifest();
    assert_eq!(manifest.model_spec().unwrap().batch, Some(1));
    assert!(manifest.targets.values().all(|target| target.serving.is_none()));
    assert_eq!(check_targets(manifest, &Machine::host()).len(), manifest.targets.len());
    // What is read is written again.
    assert_eq!(Manifest::parse(&manifest.render().unwrap()).unwrap(), *manifest);
}

#[test]
fn it_does_not_run_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = imported(folder.path());
    for arguments in [&["--self-test"][..], &["--self-test", "--device", "local-sync"]] {
        let run = Command::new(env!("CARGO_BIN_EXE_mlxcel-run"))
            .arg(bundle.path())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let output = String::from_utf8(run.stdout).unwrap() + &String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{output}");
        let expected = "error: the bundle has format 1, which no longer runs, expected at least 3\n\
                        hint: compile it again with `mlxcel-compile`\n";
        assert!(output.ends_with(expected), "{output}");
    }
}
