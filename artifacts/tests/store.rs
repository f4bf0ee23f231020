//! Store commands of `mlxcel-bundle`: copy, list, remove, gc, and bundles opened by name.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod common;

use std::{
    fs,
    time::{Duration, SystemTime},
};

use crate::common::{masked::masked, program, run, transcript, write};

/// Makes a folder with two bundles, `a` and `b`, that differ only in their weights.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 1000], |_| ());
    write(&folder.path().join("b"), &[2; 3000], |_| ());
    folder
}

#[test]
fn bundles_are_stored_under_names() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        masked(&run(folder.path(), arguments).replace(folder.path().to_str().unwrap(), "FOLDER"))
    };
    assert_eq!(run(&["list"]), "exit 0\nthe store FOLDER/.store has no bundles\n");
    assert_eq!(run(&["copy", "a", "--name", "tiny:q4"]), "exit 0\ntiny:q4\n");
    assert_eq!(run(&["export", "b"]), "exit 0\nb.tar\n");
    assert_eq!(run(&["import", "b.tar", "--name", "r.example/tiny:1"]), "exit 0\nr.example/tiny:1\n");
    fs::remove_dir_all(folder.path().join("a")).unwrap();
    insta::assert_snapshot!(run(&["list"]), @r"
    exit 0
    name                      size        unique  targets
    r.example/tiny:1       8.5 KiB       2.9 KiB  cpu
    tiny:q4                6.5 KiB    1000 bytes  cpu
    ");
    insta::assert_snapshot!(run(&["verify", "tiny:q4"]), @r"
    exit 0
    ok: tiny:q4 is intact, 4 blobs, 6.5 KiB (6702 bytes)
    not signed: nothing proves who made it
    ");
    assert_eq!(run(&["diff", "r.example/tiny:1", "b"]), "exit 0\n");
    // Copying to a folder gives the same bundle.
    assert_eq!(run(&["copy", "tiny:q4", "--out", "again"]), "exit 0\nagain\n");
    assert_eq!(run(&["diff", "again", "tiny:q4"]), "exit 0\n");
    insta::assert_snapshot!(run(&["gc", "--dry-run"]), @r"
    exit 0
    would remove 0 files, 0 bytes; 9.5 KiB (9702 bytes) remain
    ");
    insta::assert_snapshot!(run(&["remove", "tiny:q4"]), @r"
    exit 0
    removed 2 files, 5.2 KiB (5323 bytes); 8.5 KiB (8702 bytes) remain
    ");
    insta::assert_snapshot!(run(&["list", "--json"]), @r#"
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
    insta::assert_snapshot!(run(&["verify", "tiny:q4"]), @r"
    exit 1
    error: tiny:q4 is not a bundle: it does not exist
    hint: did you mean r.example/tiny:1? `mlxcel-bundle list` shows all
    ");
    insta::assert_snapshot!(run(&["remove", "tiny:q4"]), @r"
    exit 1
    error: the store FOLDER/.store has no bundle tiny:q4
    hint: did you mean r.example/tiny:1? `mlxcel-bundle list` shows all
    ");
}

#[test]
fn a_bundles_folder_takes_precedence_over_a_name() {
    let folder = folder();
    run(folder.path(), &["copy", "b", "--name", "a"]);
    assert_eq!(run(folder.path(), &["diff", "a", "a"]), "exit 0\n");
    assert_ne!(run(folder.path(), &["diff", "a", "b"]), "exit 0\n");
    fs::remove_file(folder.path().join("a/manifest.toml")).unwrap();
    assert_eq!(run(folder.path(), &["diff", "a", "b"]), "exit 0\n");
}

#[test]
fn replacing_a_name_prints_a_note() {
    let folder = folder();
    let run = |arguments: &[&str]| masked(&run(folder.path(), arguments));
    assert_eq!(run(&["copy", "a", "--name", "n"]), "exit 0\nn\n");
    assert_eq!(run(&["copy", "a", "--name", "n"]), "exit 0\nn\n");
    insta::assert_snapshot!(run(&["copy", "b", "--name", "n"]), @r"
    exit 0
    n
    note: n was another bundle before, blake3:DIGEST
    ");
    insta::assert_snapshot!(run(&["gc", "--max-size", "1kB"]), @r"
    exit 0
    removed 2 files, 5.2 KiB (5323 bytes); 8.5 KiB (8702 bytes) remain
    that exceeds the limit of 1000 bytes: bundles with a name stay until `mlxcel-bundle remove NAME`
    ");
}

#[test]
fn copy_takes_a_folder_or_a_name() {
    let folder = folder();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    insta::assert_snapshot!(run(&["copy", "a"]), @r"
    exit 2
    error: the following required arguments were not provided:
      <--out <FOLDER>|--name <NAME>>

    Usage: mlxcel-bundle copy <--out <FOLDER>|--name <NAME>> <BUNDLE>

    For more information, try '--help'.
    ");
    assert!(run(&["copy", "a", "--name", "n", "--out", "o"]).starts_with("exit 2\n"));
    insta::assert_snapshot!(run(&["copy", "a", "--name", "../n"]), @r"
    exit 2
    error: invalid value '../n' for '--name <NAME>': `../n` is not a bundle's name: expected a letter or digit at its beginning and after every /
    hint: use a name such as demo, llama-3.2-1b:q4 or registry.example/models/demo:1

    For more information, try '--help'.
    ");
    let mut full = program(folder.path(), &["copy", "a", "--name", "n"]);
    insta::assert_snapshot!(transcript(full.env("MLXCEL_STORE_LIMIT", "2kB").output().unwrap()), @r"
    exit 1
    error: the bundle needs 6.5 KiB and the store's other bundles have 0 B, expected at most 2.0 KiB in total
    hint: remove bundles with `mlxcel-bundle remove NAME`, or raise MLXCEL_STORE_LIMIT
    ");
    assert!(run(&["list"]).ends_with(" has no bundles\n"));
}

#[test]
fn stored_bundles_can_be_signed() {
    let folder = folder();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    assert!(run(&["keygen", "--no-password"]).starts_with("exit 0\n"));
    run(&["copy", "a", "--name", "n"]);
    assert!(run(&["sign", "n", "--no-password"]).starts_with("exit 0\n"));
    assert!(run(&["verify", "n", "--key", "mlxcel.pub"]).contains("ok: signed by key "));
    // A signature belongs to one name, not to the bundle's other names.
    run(&["copy", "a", "--name", "other"]);
    assert!(run(&["verify", "other"]).contains("not signed"));
    assert!(run(&["verify", "n", "--key", "mlxcel.pub"]).contains("ok: signed by key "));
    // Copying takes the signature along.
    run(&["copy", "n", "--out", "signed"]);
    assert!(run(&["verify", "signed", "--key", "mlxcel.pub"]).contains("ok: signed by key "));
    // An unsigned bundle replaces a signed one.
    assert_eq!(run(&["copy", "b", "--out", "signed"]), "exit 0\nsigned\n");
    assert!(run(&["verify", "signed"]).contains("not signed"));
}

#[test]
fn store_errors_have_hints() {
    let folder = folder();
    let with_limit = |value: &str| {
        let mut verify = program(folder.path(), &["verify", "n"]);
        transcript(verify.env("MLXCEL_STORE_LIMIT", value).output().unwrap())
    };
    insta::assert_snapshot!(with_limit("much"), @r"
    exit 1
    error: MLXCEL_STORE_LIMIT is `much`, expected a size
    hint: set it to a size such as 20GB or 500MiB
    ");
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    run(&["copy", "a", "--name", "n"]);
    fs::write(folder.path().join(".store/names/n"), "garbage").unwrap();
    // gc keeps the files of a bundle whose name is damaged.
    insta::assert_snapshot!(run(&["gc"]), @r"
    exit 1
    error: n in the store is damaged, expected a bundle's manifest
    hint: add the bundle again with `mlxcel-bundle copy BUNDLE --name n`, or run `mlxcel-bundle remove n`
    ");
    assert!(run(&["copy", "a", "--name", "n"]).starts_with("exit 0"));
    assert!(run(&["gc"]).starts_with("exit 0"));
    assert!(run(&["verify", "n"]).starts_with("exit 0\nok: n is intact"));
}

#[test]
fn files_of_removed_bundles_stay_while_the_store_is_in_use() {
    let folder = folder();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    run(&["copy", "a", "--name", "n"]);
    run(&["copy", "b", "--name", "m"]);
    let store = mlxcel_artifacts::Store::new(folder.path().join(".store"), None).unwrap();
    let lock = store.lock_shared().unwrap();
    // One unknown name: nothing is removed.
    assert!(run(&["remove", "n", "none"]).starts_with("exit 1\nerror: the store "));
    insta::assert_snapshot!(run(&["remove", "n"]), @r"
    exit 0
    removed the names; the store is in use: run `mlxcel-bundle gc` later to remove their files
    ");
    assert!(run(&["gc", "--dry-run"]).starts_with("exit 0\nwould remove "));
    assert!(run(&["gc"]).starts_with("exit 1\n"));
    drop(lock);
    assert!(run(&["gc"]).starts_with("exit 0\nremoved "));
    assert!(run(&["verify", "m"]).starts_with("exit 0\n"));
}

#[test]
fn export_replaces_only_regular_files() {
    let folder = folder();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    std::os::unix::fs::symlink("elsewhere", folder.path().join("link")).unwrap();
    insta::assert_snapshot!(run(&["export", "a", "--out", "link"]), @r"
    exit 1
    error: cannot write link: it is not a regular file, expected one or nothing
    hint: name another file with --out, or write to stdout with `--out -`
    ");
    assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
    run(&["copy", "a", "--name", "x/n:1"]);
    assert_eq!(run(&["export", "x/n:1"]), "exit 0\nn:1.tar\n");
}

#[test]
fn a_misspelled_name_is_answered_with_similar_ones() {
    let folder = folder();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    run(&["copy", "a", "--name", "demo"]);
    insta::assert_snapshot!(run(&["verify", "dmeo"]), @r"
    exit 1
    error: dmeo is not a bundle: it does not exist
    hint: did you mean demo? `mlxcel-bundle list` shows all
    ");
}

#[test]
fn files_beside_scratch_folders_are_kept_for_a_week() {
    let folder = tempfile::tempdir().unwrap();
    let store = mlxcel_artifacts::Store::new(folder.path().join(".store"), None).unwrap();
    // mlxcel-compile has calibration keep there what it has collected.
    let kept = store.scratch_folder().unwrap().path().with_file_name("calibration-0.states-0");
    fs::write(&kept, "collected").unwrap();
    store.gc(None, false).unwrap();
    assert!(kept.exists());
    let week_ago = SystemTime::now() - Duration::from_secs(8 * 24 * 3600);
    fs::File::options().write(true).open(&kept).unwrap().set_modified(week_ago).unwrap();
    store.gc(None, false).unwrap();
    assert!(!kept.exists());
}
