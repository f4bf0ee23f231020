use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::{
    open::{Store, parse_limit},
    write::StoreWriter,
};
use crate::{
    bundle::{
        Bundle,
        sign::SecretKey,
        write::{BundleWriter, Destination as _},
    },
    digest::Digest,
    error::Error,
    files::list_folder,
    layout::StoreFolder,
    manifest::{Manifest, tests::manifest},
    name::Name,
};

/// Returns a store in a temporary folder, and a file to put into it.
fn store() -> (TempDir, Store, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("store"), None).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "content").unwrap();
    (folder, store, file)
}

/// Writes a bundle with these weights into a folder.
fn bundle(folder: &Path, weights: &str) -> Bundle {
    let mut writer = BundleWriter::create(&folder.join("bundle")).unwrap();
    writer.add_bytes(b"vmfb").unwrap();
    writer.add_bytes(b"{}").unwrap();
    let blob = writer.add_bytes(weights.as_bytes()).unwrap();
    let weights = [("model.safetensors".to_owned(), blob)].into();
    writer.finish(&Manifest { weights, ..manifest() }).unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Adds a bundle with these weights to the store.
fn add(store: &Store, named: &str, weights: &str) -> Result<Bundle, Error> {
    let folder = tempfile::tempdir().unwrap();
    bundle(folder.path(), weights).copy_to(Box::new(StoreWriter::new(store, &name(named))?))
}

/// Opens a bundle of the store and verifies all of it.
fn verify(store: &Store, named: &str) -> Result<Manifest, Error> {
    let bundle = store.open_without_weights(Path::new(named))?;
    for (role, blob) in bundle.manifest().blobs() {
        let digest = blob.digest;
        let (path, _) = store.find_blob(digest).ok_or(Error::MissingBlob { role, digest })?;
        assert_eq!(fs::metadata(path).unwrap().len(), blob.size);
    }
    Ok(bundle.manifest().clone())
}

fn blobs(store: &Store) -> usize {
    list_folder(&store.folder(StoreFolder::Blobs)).unwrap().len()
}

#[test]
fn put_files_are_found() {
    let (_folder, store, file) = store();
    let (key, other) = (Digest::of(b"key"), Digest::of(b"other"));
    assert_eq!(store.get(&key).unwrap(), None);
    let path = store.put(&key, &file).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(store.get(&key).unwrap(), Some(path.clone()));
    assert_eq!(store.get(&other).unwrap(), None);
    // Equal content under another key is one file.
    assert_eq!(store.put(&other, &file).unwrap(), path);
    assert_eq!(blobs(&store), 1);
}

#[test]
fn damaged_entries_are_missing_until_put_again() {
    let (_folder, store, file) = store();
    let key = Digest::of(b"key");
    let path = store.put(&key, &file).unwrap();
    let damage = |path: &Path, text: &str| {
        fs::remove_file(path).unwrap();
        fs::write(path, text).unwrap();
    };
    for text in ["contenT", "", "longer content"] {
        damage(&path, text);
        assert_eq!(store.get(&key).unwrap(), None);
        assert_eq!(store.put(&key, &file).unwrap(), path);
        assert_eq!(store.get(&key).unwrap().as_ref(), Some(&path));
    }
    // A link to the right content counts as damaged.
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&file, &path).unwrap();
    assert_eq!(store.get(&key).unwrap(), None);
    store.put(&key, &file).unwrap();
    // A damaged entry.
    let entry = store.folder(StoreFolder::Built).join(key.hex());
    for text in ["", "../../etc/passwd\n", &"0".repeat(64)] {
        damage(&entry, text);
        assert_eq!(store.get(&key).unwrap(), None);
    }
}

#[test]
fn concurrent_puts_succeed() {
    let (_folder, store, file) = store();
    let key = Digest::of(b"key");
    let paths: Vec<PathBuf> = thread::scope(|scope| {
        let put = || {
            let path = store.put(&key, &file).unwrap();
            // The file is complete at any moment.
            assert_eq!(store.get(&key).unwrap().as_ref(), Some(&path));
            path
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(put)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(paths.iter().all(|path| *path == paths[0]));
    assert_eq!(blobs(&store), 1);
    assert_eq!(list_folder(&store.folder(StoreFolder::Incoming)).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn bundles_share_blobs() {
    let (_folder, store, _) = store();
    add(&store, "q4", "small").unwrap();
    add(&store, "bf16", "larger").unwrap();
    add(&store, "r.example/models/demo:1", "larger").unwrap();
    // The vmfb, config.json and two files of weights.
    assert_eq!(blobs(&store), 4);
    let listed: Vec<_> =
        store.list().unwrap().into_iter().map(|s| (s.name.to_string(), s.own_bytes)).collect();
    let expected = [("bf16", 0), ("q4", 5), ("r.example/models/demo:1", 0)];
    assert_eq!(listed, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    assert_eq!(verify(&store, "q4").unwrap().weights["model.safetensors"].size, 5);
    // Another bundle takes the name.
    add(&store, "q4", "other").unwrap();
    assert_eq!(verify(&store, "q4").unwrap().weights["model.safetensors"].digest, Digest::of(b"other"));
}

#[test]
fn blobs_in_the_store_are_compared_with_the_manifest() {
    let (_folder, store, _) = store();
    add(&store, "a", "weights").unwrap();
    let mut lying = manifest();
    lying.files.get_mut("config.json").unwrap().size += 1;
    let mut writer = StoreWriter::new(&store, &name("b")).unwrap();
    assert!(lying.blobs().all(|(_, blob)| writer.contains(blob)));
    let text = lying.render().unwrap();
    let refused = Box::new(writer).commit(&lying, text, None).unwrap_err().to_string();
    assert!(refused.starts_with("file config.json has 2 bytes, expected 3: "), "{refused}");
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn gc_removes_blobs_without_a_name() {
    let (_folder, store, file) = store();
    add(&store, "a", "of a").unwrap();
    add(&store, "b", "of b").unwrap();
    let key = Digest::of(b"key");
    store.put(&key, &file).unwrap();
    store.remove(&name("a")).unwrap();
    let would = store.gc(None, true).unwrap();
    assert_eq!(blobs(&store), 5, "a dry run removed something");
    let collected = store.gc(None, false).unwrap();
    assert_eq!(would, collected);
    // The weights and the manifest of `a`.
    assert_eq!((collected.files, collected.kept_bytes), (2, 4 + 2 + 4 + 7));
    verify(&store, "b").unwrap();
    assert!(store.get(&key).unwrap().is_some());
    assert_eq!(store.gc(None, false).unwrap().files, 0);
    assert_eq!(
        store.remove(&name("a")).unwrap_err().to_string(),
        format!(
            "the store {} has no bundle a\nhint: did you mean b? `mlxcel-bundle list` shows all",
            store.path().display()
        )
    );
}

#[test]
fn gc_removes_the_least_recently_used_first() {
    let (folder, store, _) = store();
    add(&store, "named", "weights").unwrap();
    let keys = ["first", "second", "third"].map(|text| {
        let file = folder.path().join(text);
        fs::write(&file, text).unwrap();
        let key = Digest::of(text.as_bytes());
        store.put(&key, &file).unwrap();
        thread::sleep(Duration::from_millis(20));
        key
    });
    store.get(&keys[0]).unwrap();
    let named = 4 + 2 + 7;
    // A limit for two of the three.
    assert_eq!(store.gc(Some(named + 10), false).unwrap().kept_bytes, named + 10);
    let stays = |key| store.get(key).unwrap().is_some();
    assert_eq!(keys.each_ref().map(stays), [true, false, true]);
    // A bundle with a name stays beyond the limit.
    assert_eq!(store.gc(Some(0), false).unwrap().kept_bytes, named);
    verify(&store, "named").unwrap();
    assert_eq!(keys.each_ref().map(stays), [false; 3]);
}

#[test]
fn the_limit_of_a_store() {
    let (_folder, store, file) = store();
    // A limit for one bundle and the files that both share.
    let store = Store::new(store.path(), Some(4 + 2 + 5 + 2)).unwrap();
    let key = Digest::of(b"key");
    store.put(&key, &file).unwrap();
    add(&store, "a", "first").unwrap();
    assert_eq!(store.get(&key).unwrap(), None, "over the limit, and no bundle needs it");
    assert_eq!(
        add(&store, "b", "other").unwrap_err().to_string(),
        "the bundle needs 5 B and the store's other bundles have 11 B, expected at most 13 B in total\n\
         hint: remove bundles with `mlxcel-bundle remove NAME`, or raise MLXCEL_STORE_LIMIT"
    );
    // The second name keeps the bundle.
    add(&store, "c", "first").unwrap();
    assert!(matches!(add(&store, "a", "other"), Err(Error::StoreFull { .. })));
    store.remove(&name("c")).unwrap();
    // It fits if it replaces the other bundle.
    add(&store, "a", "other").unwrap();
    verify(&store, "a").unwrap();
    assert_eq!(blobs(&store), 3);
}

#[test]
fn adding_a_bundle_again_repairs_it() {
    let (_folder, store, _) = store();
    let bundle = add(&store, "a", "weights").unwrap();
    let blob = store.blob_path(bundle.manifest().weights["model.safetensors"].digest);
    fs::remove_file(&blob).unwrap();
    assert!(verify(&store, "a").is_err());
    add(&store, "a", "weights").unwrap();
    verify(&store, "a").unwrap();
    let manifest = bundle.path().join("manifest.toml");
    fs::write(&manifest, "format = 1\n").unwrap();
    let stored = &store.list().unwrap()[0];
    assert!(matches!(stored.manifest, Err(Error::BlobDigest { .. })), "{stored:?}");
    assert!(matches!(verify(&store, "a"), Err(Error::DamagedName { .. })));
    // A valid manifest of another bundle.
    let text = bundle.text().replacen("model = \"tiny\"", "model = \"tidy\"", 1);
    assert_ne!(text, bundle.text());
    Manifest::parse(&text).unwrap();
    fs::write(&manifest, text).unwrap();
    assert!(matches!(verify(&store, "a"), Err(Error::DamagedName { .. })));
    add(&store, "a", "weights").unwrap();
    verify(&store, "a").unwrap();
}

#[test]
fn gc_refuses_stores_in_use_and_newer_formats() {
    let (_folder, store, file) = store();
    add(&store, "a", "weights").unwrap();
    let using = store.lock_shared().unwrap();
    assert_eq!(
        store.gc(None, false).unwrap_err().to_string(),
        format!(
            "the store {} is in use by another process, expected none\n\
             hint: repeat the command when builds, downloads and running models have ended",
            store.path().display()
        )
    );
    drop(using);
    // An open bundle keeps its files, even if another bundle takes its name.
    let read = store.open_without_weights(Path::new("a")).unwrap();
    add(&store, "a", "others").unwrap();
    assert!(matches!(store.gc(None, false), Err(Error::StoreInUse { .. })));
    assert_eq!(read.weights().unwrap().len(), 1);
    drop(read);
    store.gc(None, false).unwrap();
    // A bundle with a newer format.
    let newer = "format = 999\nblobs = \"elsewhere\"\n";
    let digest = Digest::of(newer.as_bytes());
    let folder = store.folder(StoreFolder::Bundles).join(digest.hex());
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.toml"), newer).unwrap();
    store.replace(StoreFolder::Names, "later", &format!("{}\n", digest.hex())).unwrap();
    store.put(&Digest::of(b"key"), &file).unwrap();
    assert!(matches!(store.gc(Some(0), false), Err(Error::NewerFormat { .. })));
    assert_eq!(blobs(&store), 4);
}

#[test]
fn gc_removes_the_files_of_killed_writers() {
    let (_folder, store, file) = store();
    let key = Digest::of(b"key");
    store.put(&key, &file).unwrap();
    let incoming = store.create_folder(StoreFolder::Incoming).unwrap();
    fs::write(incoming.join(".abc"), "half of a blo").unwrap();
    fs::create_dir(incoming.join(".def")).unwrap();
    fs::write(incoming.join(".def/manifest.toml"), "format").unwrap();
    let part = incoming.join(format!("{}.part", Digest::of(b"blob").hex()));
    fs::write(&part, "half of a download").unwrap();
    fs::write(store.folder(StoreFolder::Blobs).join("notes.txt"), "somebody's").unwrap();
    let collected = store.gc(None, false).unwrap();
    assert_eq!(collected.files, 2);
    // A download stays for a week.
    assert_eq!(list_folder(&incoming).unwrap(), [part.as_path()]);
    let week = Command::new("touch").args(["-d", "8 days ago"]).arg(&part).status().unwrap();
    assert!(week.success());
    assert_eq!(store.gc(None, false).unwrap().files, 1);
    assert!(store.get(&key).unwrap().is_some());
}

#[test]
fn concurrent_writers_and_gc() {
    let (_folder, store, _) = store();
    thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..5 {
                    let named = format!("w{writer}");
                    add(store, &named, &format!("weights {round}")).unwrap();
                    verify(store, &named).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..200 {
                match store.gc(None, false) {
                    Ok(_) | Err(Error::StoreInUse { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    });
    store.gc(None, false).unwrap();
    // The vmfb, config.json, and the weights of the last round.
    assert_eq!(blobs(&store), 3);
    assert_eq!(store.list().unwrap().len(), 4);
}

#[test]
fn questions_do_not_create_a_store() {
    let (_folder, store, _) = store();
    assert!(store.resolve(&name("none")).unwrap().is_none());
    assert!(!store.path().exists());
}

#[test]
fn errors_of_paths_and_limits() {
    let (folder, store, file) = store();
    let missing = folder.path().join("missing");
    let error = store.put(&Digest::of(b"key"), &missing).unwrap_err();
    let missing = missing.display();
    assert_eq!(
        error.to_string(),
        format!("cannot read {missing}\nhint: check the path with `ls -ld {missing}`")
    );
    assert_eq!(
        Store::new(&file, None).unwrap_err().to_string(),
        format!(
            "the store {} is a file, expected a folder\n\
             hint: set --store or MLXCEL_STORE to a folder",
            file.display()
        )
    );
    assert_eq!(
        parse_limit(Some(OsStr::new("much"))).unwrap_err().to_string(),
        "MLXCEL_STORE_LIMIT is `much`, expected a size\nhint: set it to a size such as 20GB or 500MiB"
    );
    assert_eq!(parse_limit(Some(OsStr::new("20GB"))).unwrap(), Some(20_000_000_000));
    assert_eq!(parse_limit(Some(OsStr::new("1 KiB"))).unwrap(), Some(1024));
    assert_eq!(parse_limit(Some(OsStr::new(""))).unwrap(), None);
}

#[test]
fn the_environment_may_name_no_store() {
    assert_eq!(
        Error::NoStore.to_string(),
        "no folder for the store: neither HOME, XDG_CACHE_HOME nor MLXCEL_STORE is set\n\
         hint: set MLXCEL_STORE to a folder"
    );
}

#[test]
fn the_longest_name_has_a_place_for_its_signature() {
    let (folder, store, _) = store();
    let longest = "a".repeat(190);
    let added = add(&store, &longest, "weights").unwrap();
    let [secret, public] = ["key", "key.pub"].map(|name| folder.path().join(name));
    let key = SecretKey::generate(&secret, &public, None).unwrap();
    // Keys may be links, as those of Kubernetes' secrets are.
    let link = folder.path().join("link");
    symlink(&secret, &link).unwrap();
    let secret = SecretKey::open(&link, || Ok(String::new())).unwrap();
    added.sign(&secret, "comment").unwrap();
    let opened = store.open_without_weights(Path::new(&longest)).unwrap();
    assert_eq!(opened.verify_signature(&key).unwrap().key, key.id());
    store.remove(&name(&longest)).unwrap();
    assert!("a".repeat(191).parse::<Name>().is_err());
}

#[test]
fn only_this_user_can_say_what_was_compiled_here() {
    let (folder, store, _) = store();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    let [ours, theirs] = [(ours, "ours"), (theirs, "theirs")].map(|(at, weights)| bundle(&at, weights));
    store.remember_built(&ours);
    let built_here = |bundle: &Bundle| store.open(bundle.path()).unwrap().was_built_here();
    assert!(built_here(&ours) && !built_here(&theirs));
    // Whoever can write to the store can copy notes, but not make one.
    let notes = StoreFolder::BuiltHere(rustix::process::geteuid().as_raw()).path(store.path());
    let [note] = &list_folder(&notes).unwrap()[..] else { panic!("one note") };
    let forged = notes.join(Digest::of(theirs.text().as_bytes()).hex());
    for text in [String::new(), fs::read_to_string(note).unwrap()] {
        fs::write(&forged, text).unwrap();
        assert!(!built_here(&theirs));
    }
}
