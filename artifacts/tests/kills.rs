//! Killing a writer at any moment leaves bundles and the store consistent.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use mlxcel_artifacts::{Bundle, Digest, Name, Store};

use crate::common::{kill::kill_at_random, program, registry::Registry, write};

/// Returns whether `path` holds a bundle. It must equal `expected` then.
fn is_there(path: &Path, expected: &Bundle) -> bool {
    if !path.exists() {
        return false;
    }
    let found = Bundle::open(path).unwrap();
    assert_eq!(found.manifest(), expected.manifest());
    true
}

/// Returns whether the store has the bundle `name`. Every blob in the store must have its digest.
fn is_stored(folder: &Path, name: &str, expected: &Bundle) -> bool {
    let store = Store::new(folder.join(".store"), None).unwrap();
    for blob in fs::read_dir(store.path().join("blobs")).into_iter().flatten() {
        let path = blob.unwrap().path();
        let (digest, _) = Digest::of_file(&path).unwrap();
        assert_eq!(path.file_name().unwrap().to_str().unwrap(), digest.hex());
    }
    let stored = store.list().unwrap();
    let Some(found) = stored.iter().find(|stored| stored.name.as_str() == name) else { return false };
    assert_eq!(found.manifest.as_ref().unwrap(), expected.manifest());
    let verified = program(folder, &["verify", name]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    true
}

/// Writes a bundle of some megabytes to `a`.
fn bundle(folder: &Path) -> Bundle {
    write(&folder.join("a"), &vec![7; 4_000_000], |_| ());
    Bundle::open(&folder.join("a")).unwrap()
}

#[test]
fn import_to_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let expected = bundle(at);
    expected.export(&at.join("a.tar")).unwrap();
    let out = at.join("out");
    kill_at_random(
        || program(at, &["import", "a.tar", "--out", "out"]),
        || _ = fs::remove_dir_all(&out),
        || is_there(&out, &expected),
    );
}

#[test]
fn import_over_another_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let expected = bundle(at);
    expected.export(&at.join("a.tar")).unwrap();
    let out = at.join("out");
    let other = |path: &Path| write(path, &[1; 1000], |manifest| manifest.model = "other".into());
    kill_at_random(
        || program(at, &["import", "a.tar", "--out", "out"]),
        || {
            _ = fs::remove_dir_all(&out);
            other(&out);
        },
        // The folder always holds either the old or the new bundle.
        || match Bundle::open(&out).unwrap() {
            found if found.manifest().model == "other" => false,
            found => found.manifest() == expected.manifest(),
        },
    );
}

#[test]
fn export() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let expected = bundle(at);
    let archive = at.join("out.tar");
    kill_at_random(
        || program(at, &["export", "a", "--out", "out.tar"]),
        || _ = fs::remove_file(&archive),
        || {
            archive.exists() && {
                let imported = at.join("imported");
                assert!(program(at, &["import", "out.tar", "--out", "imported"]).status().unwrap().success());
                is_there(&imported, &expected)
            }
        },
    );
    // What killed processes left is removed when it is old enough.
    let left = || {
        let entries = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.join("lock").exists()).collect::<Vec<_>>()
    };
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for path in left() {
        fs::File::open(path.join("lock")).unwrap().set_modified(hour_ago).unwrap();
    }
    expected.export(&archive).unwrap();
    assert_eq!(left(), Vec::<PathBuf>::new());
}

#[test]
fn copy_to_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let expected = bundle(at);
    kill_at_random(
        || program(at, &["copy", "a", "--name", "n"]),
        || _ = fs::remove_dir_all(at.join(".store")),
        || is_stored(at, "n", &expected),
    );
}

#[test]
fn pull() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let expected = bundle(at);
    let registry = Registry::start(at, false);
    let reference = registry.reference("tiny");
    assert!(program(at, &["push", "a", &reference]).output().unwrap().status.success());
    kill_at_random(
        || program(at, &["pull", &reference, "--name", "n"]),
        || _ = fs::remove_dir_all(at.join(".store")),
        || is_stored(at, "n", &expected),
    );
}

#[test]
fn gc() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let expected = bundle(at);
    write(&at.join("b"), &vec![8; 1000], |_| ());
    let fill = || {
        _ = fs::remove_dir_all(at.join(".store"));
        for (path, name) in [("a", "n"), ("b", "gone")] {
            assert!(program(at, &["copy", path, "--name", name]).output().unwrap().status.success());
        }
        let store = Store::new(at.join(".store"), None).unwrap();
        store.remove(&"gone".parse::<Name>().unwrap()).unwrap();
    };
    kill_at_random(
        || program(at, &["gc"]),
        fill,
        || {
            assert!(is_stored(at, "n", &expected));
            // Done when the blobs that only the removed bundle had are gone.
            fs::read_dir(at.join(".store/blobs")).unwrap().count() == expected.manifest().blobs().count() - 1
        },
    );
}
