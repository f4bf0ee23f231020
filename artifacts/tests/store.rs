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
    assert_eq!(shown(&["list"]), "exit 0\nthe store FOLDER/.store has no bundles\n");
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
    ok: tiny:q4 is whole, 4 blobs, 6.5 KiB (6702 bytes)
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
    removed 2 files, 3.7 KiB (3750 bytes); 8.5 KiB (8702 bytes) stay
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
fn a_bundle_s_folder_comes_before_a_name_and_other_folders_after() {
    let folder = folder();
    shown(folder.path(), &["copy", "b", "--name", "a"]);
    assert_eq!(shown(folder.path(), &["diff", "a", "a"]), "exit 0\n");
    assert_ne!(shown(folder.path(), &["diff", "a", "b"]), "exit 0\n");
    fs::remove_file(folder.path().join("a/manifest.toml")).unwrap();
    assert_eq!(shown(folder.path(), &["diff", "a", "b"]), "exit 0\n");
}

#[test]
fn that_a_name_means_another_bundle_is_said() {
    let folder = folder();
    let shown = |arguments: &[&str]| masked(&shown(folder.path(), arguments));
    assert_eq!(shown(&["copy", "a", "--name", "n"]), "exit 0\nn\n");
    assert_eq!(shown(&["copy", "a", "--name", "n"]), "exit 0\nn\n");
    insta::assert_snapshot!(shown(&["copy", "b", "--name", "n"]), @r"
    exit 0
    n
    note: n was another bundle before, blake3:DIGEST
    ");
    insta::assert_snapshot!(shown(&["gc", "--max-size", "1kB"]), @r"
    exit 0
    removed 2 files, 3.7 KiB (3750 bytes); 8.5 KiB (8702 bytes) stay
    that is more than 1000 bytes: bundles that have a name stay until they are removed
    ");
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
    error: invalid value '../n' for '--name <NAME>': `../n` is no name for a bundle: expected a letter or digit at its beginning and after every /
    hint: such as demo, llama-3.2-1b:q4 or registry.example/models/demo:1

    For more information, try '--help'.
    ");
    let mut full = program(folder.path(), &["copy", "a", "--name", "n"]);
    insta::assert_snapshot!(text(full.env("MLXCEL_STORE_LIMIT", "2kB").output().unwrap()), @r"
    exit 1
    error: the bundle needs 6.5 KiB and the store's other bundles have 0 B, expected at most 2.0 KiB in all
    hint: remove bundles with mlxcel-bundle remove, or raise MLXCEL_STORE_LIMIT
    ");
    assert!(shown(&["list"]).ends_with(" has no bundles\n"));
}

#[test]
fn a_bundle_in_the_store_is_signed_as_any_other() {
    let folder = folder();
    let shown = |arguments: &[&str]| shown(folder.path(), arguments);
    assert!(shown(&["keygen", "--no-password"]).starts_with("exit 0\n"));
    shown(&["copy", "a", "--name", "n"]);
    assert!(shown(&["sign", "n", "--no-password"]).starts_with("exit 0\n"));
    assert!(shown(&["verify", "n", "--key", "mlxcel.pub"]).contains("ok: signed by the key "));
    // It is one name's, whatever other names the same bundle has.
    shown(&["copy", "a", "--name", "other"]);
    assert!(shown(&["verify", "other"]).contains("not signed"));
    assert!(shown(&["verify", "n", "--key", "mlxcel.pub"]).contains("ok: signed by the key "));
    // The signature goes with it.
    shown(&["copy", "n", "--out", "signed"]);
    assert!(shown(&["verify", "signed", "--key", "mlxcel.pub"]).contains("ok: signed by the key "));
    // And what is not signed takes the place of what is.
    assert_eq!(shown(&["copy", "b", "--out", "signed"]), "exit 0\nsigned\n");
    assert!(shown(&["verify", "signed"]).contains("not signed"));
}

#[test]
fn what_is_wrong_with_the_store_is_said() {
    let folder = folder();
    let store = |value: &str| {
        let mut verify = program(folder.path(), &["verify", "n"]);
        text(verify.env("MLXCEL_STORE_LIMIT", value).output().unwrap())
    };
    insta::assert_snapshot!(store("much"), @r"
    exit 1
    error: MLXCEL_STORE_LIMIT is `much`, expected a size
    hint: such as 20GB or 500MiB
    ");
    let shown = |arguments: &[&str]| shown(folder.path(), arguments);
    shown(&["copy", "a", "--name", "n"]);
    fs::write(folder.path().join(".store/names/n"), "garbage").unwrap();
    // What it needs is not thrown away.
    insta::assert_snapshot!(shown(&["gc"]), @r"
    exit 1
    error: n in the store is damaged, expected a bundle's manifest
    hint: put it there again, which takes what is left of it, or mlxcel-bundle remove n
    ");
    assert!(shown(&["copy", "a", "--name", "n"]).starts_with("exit 0"));
    assert!(shown(&["gc"]).starts_with("exit 0"));
    assert!(shown(&["verify", "n"]).starts_with("exit 0\nok: n is whole"));
}

#[test]
fn what_is_removed_while_others_work_goes_later() {
    let folder = folder();
    let shown = |arguments: &[&str]| shown(folder.path(), arguments);
    shown(&["copy", "a", "--name", "n"]);
    shown(&["copy", "b", "--name", "m"]);
    let store = mlxcel_artifacts::Store::open(Some(&folder.path().join(".store"))).unwrap();
    let using = store.in_use().unwrap();
    // All of the names, or none.
    assert!(shown(&["remove", "n", "none"]).starts_with("exit 1\nerror: the store "));
    insta::assert_snapshot!(shown(&["remove", "n"]), @r"
    exit 0
    removed; what only they had stays until mlxcel-bundle gc: the store is in use
    ");
    assert!(shown(&["gc", "--dry-run"]).starts_with("exit 0\nwould remove "));
    assert!(shown(&["gc"]).starts_with("exit 1\n"));
    drop(using);
    assert!(shown(&["gc"]).starts_with("exit 0\nremoved "));
    assert!(shown(&["verify", "m"]).starts_with("exit 0\n"));
}

#[test]
fn nothing_but_a_file_is_exported_over() {
    let folder = folder();
    let shown = |arguments: &[&str]| shown(folder.path(), arguments);
    std::os::unix::fs::symlink("elsewhere", folder.path().join("link")).unwrap();
    insta::assert_snapshot!(shown(&["export", "a", "--out", "link"]), @r"
    exit 1
    error: cannot write link: it is no regular file, expected one or nothing; --out - is standard output
    ");
    assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
    shown(&["copy", "a", "--name", "x/n:1"]);
    assert_eq!(shown(&["export", "x/n:1"]), "exit 0\nn:1.tar\n");
}
