//! The store by `mlxcel-bundle`: copy, list, remove, gc, and bundles opened by their names.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod common;

use std::fs;

use crate::common::{masked::masked, program, shown, text, write};

/// Two bundles that have all in common but their weights.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 1000], |_| ());
    write(&folder.path().join("b"), &[2; 3000], |_| ());
    folder
}

#[test]
fn bundles_are_kept_under_names() {
    let folder = folder();
    let shown = |arguments: &[&str]| {
        masked(&shown(folder.path(), arguments).replace(folder.path().to_str().unwrap(), "FOLDER"))
    };
    assert_eq!(shown(&["list"]), "exit 0\n");
    assert_eq!(shown(&["copy", "a", "--name", "tiny:q4"]), "exit 0\ntiny:q4\n");
    assert_eq!(shown(&["export", "b"]), "exit 0\nb.tar\n");
    assert_eq!(shown(&["import", "b.tar", "--name", "r.example/tiny:1"]), "exit 0\nr.example/tiny:1\n");
    fs::remove_dir_all(folder.path().join("a")).unwrap();
    insta::assert_snapshot!(shown(&["list"]), @r"
    exit 0
    name                      size       its own  targets
    r.example/tiny:1       8.5 KiB       2.9 KiB  cpu
    tiny:q4                6.5 KiB    1000 bytes  cpu
    ");
    insta::assert_snapshot!(shown(&["verify", "tiny:q4"]), @r"
    exit 0
    ok: FOLDER/.store/bundles/DIGEST is whole, 4 blobs, 6.5 KiB (6702 bytes)
    not signed: it is whole, but nothing says who made it
    ");
    assert_eq!(shown(&["diff", "r.example/tiny:1", "b"]), "exit 0\n");
    // Back to a folder of its own, which is the same bundle.
    assert_eq!(shown(&["copy", "tiny:q4", "--out", "again"]), "exit 0\nagain\n");
    assert_eq!(shown(&["diff", "again", "tiny:q4"]), "exit 0\n");
    insta::assert_snapshot!(shown(&["gc", "--dry-run"]), @r"
    exit 0
    would remove 0 files, 0 bytes; 9.5 KiB (9702 bytes) stay
    ");
    insta::assert_snapshot!(shown(&["remove", "tiny:q4"]), @r"
    exit 0
    removed 2 files, 3.7 KiB (3752 bytes); 8.5 KiB (8702 bytes) stay
    ");
    insta::assert_snapshot!(shown(&["list", "--json"]), @r#"
    exit 0
    [
      {
        "name": "r.example/tiny:1",
        "manifest": "blake3:DIGEST",
        "model": "tiny",
        "targets": [
          "cpu"
        ],
        "bytes": 8702,
        "own_bytes": 8702
      }
    ]
    "#);
    insta::assert_snapshot!(shown(&["verify", "tiny:q4"]), @r"
    exit 1
    error: tiny:q4 is not a bundle: nothing is there
    hint: name the folder that mlxcel-compile printed as its last line, or a bundle that mlxcel-bundle list shows
    ");
    insta::assert_snapshot!(shown(&["remove", "tiny:q4"]), @r"
    exit 1
    error: the store FOLDER/.store has no tiny:q4
    hint: mlxcel-bundle list shows what it has
    ");
}

#[test]
fn a_folder_comes_before_a_name() {
    let folder = folder();
    shown(folder.path(), &["copy", "b", "--name", "a"]);
    assert!(shown(folder.path(), &["verify", "a"]).starts_with("exit 0\nok: a is whole"));
}

#[test]
fn a_bundle_goes_to_one_place() {
    let folder = folder();
    let shown = |arguments: &[&str]| shown(folder.path(), arguments);
    insta::assert_snapshot!(shown(&["copy", "a"]), @r"
    exit 2
    error: the following required arguments were not provided:
      <--out <FOLDER>|--name <NAME>>

    Usage: mlxcel-bundle copy <--out <FOLDER>|--name <NAME>> <BUNDLE>

    For more information, try '--help'.
    ");
    assert!(shown(&["copy", "a", "--name", "n", "--out", "o"]).starts_with("exit 2\n"));
    insta::assert_snapshot!(shown(&["copy", "a", "--name", "../n"]), @r"
    exit 2
    error: invalid value '../n' for '--name <NAME>': `../n` is no name for a bundle, expected letters, digits and any of . _ - : @ /
    hint: such as demo, llama-3.2-1b:q4 or registry.example/models/demo:1

    For more information, try '--help'.
    ");
    let mut full = program(folder.path(), &["copy", "a", "--name", "n"]);
    insta::assert_snapshot!(text(full.env("MLXCEL_STORE_LIMIT", "2kB").output().unwrap()), @r"
    exit 1
    error: the bundle needs 6.5 KiB and the store's other bundles have 0 B, expected at most 2.0 KiB in all
    hint: remove bundles with mlxcel-bundle remove, or raise MLXCEL_STORE_LIMIT
    ");
    assert_eq!(shown(&["list"]), "exit 0\n");
}

#[test]
fn a_bundle_in_the_store_is_signed_as_any_other() {
    let folder = folder();
    let shown = |arguments: &[&str]| shown(folder.path(), arguments);
    assert!(shown(&["keygen", "--no-password"]).starts_with("exit 0\n"));
    shown(&["copy", "a", "--name", "n"]);
    assert!(shown(&["sign", "n", "--no-password"]).starts_with("exit 0\n"));
    assert!(shown(&["verify", "n", "--key", "mlxcel.pub"]).contains("ok: signed by the key "));
    // The signature goes with it.
    shown(&["copy", "n", "--out", "signed"]);
    assert!(shown(&["verify", "signed", "--key", "mlxcel.pub"]).contains("ok: signed by the key "));
    // And what is not signed takes the place of what is.
    assert_eq!(shown(&["copy", "b", "--out", "signed"]), "exit 0\nsigned\n");
    assert!(shown(&["verify", "signed"]).contains("not signed"));
}
