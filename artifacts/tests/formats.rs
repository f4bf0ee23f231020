//! Bundles of older formats open, and `mlxcel-bundle` describes and verifies them.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod common;

use std::{fs, path::Path};

use mlxcel_artifacts::{Bundle, Digest, Manifest};

use crate::common::run;

/// A manifest of format 2, whose blobs are `vmfb` and `{}`.
const FORMAT_2: &str = include_str!("fixtures/format-2.toml");

#[test]
fn format_2() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = folder.path().join("b/blobs");
    fs::create_dir_all(&blobs).unwrap();
    for bytes in [&b"vmfb"[..], b"{}"] {
        fs::write(blobs.join(Digest::of(bytes).hex()), bytes).unwrap();
    }
    fs::write(folder.path().join("b/manifest.toml"), FORMAT_2).unwrap();
    let bundle = Bundle::open(&folder.path().join("b")).unwrap();
    assert_eq!((bundle.manifest().format, bundle.manifest().model_spec().unwrap().batch), (2, Some(1)));
    assert_eq!(Manifest::parse(&bundle.manifest().render().unwrap()).unwrap(), *bundle.manifest());
    assert!(run(folder.path(), &["verify", "b"]).starts_with("exit 0\nok: b is intact, 2 blobs"));
    let text = run(folder.path(), &["inspect", "b"]);
    for line in
        ["format      2\n", "batch 1, context 64, vocab 100\n", "entries   prefill_16  (tokens i32[1,16]"]
    {
        assert!(text.starts_with("exit 0\n") && text.contains(line), "{text}");
    }
    assert!(!text.contains("serving"), "{text}");
}

#[test]
fn format_1() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/tests/fixtures/format-1.tar");
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    let imported = run(&["import", archive.to_str().unwrap(), "--out", "b"]);
    assert!(imported.starts_with("exit 0\n"), "{imported}");
    let verified = run(&["verify", "b"]);
    assert!(verified.starts_with("exit 0\nok: b is intact, "), "{verified}");
    let text = run(&["inspect", "b"]);
    assert!(text.starts_with("exit 0\n") && text.contains("format      1\n"), "{text}");
    assert!(text.contains("batch 1, context "), "{text}");
}
