//! The destination after writing, and after failures.

use std::{env, os::unix::fs::symlink, process::Command, thread, time::Duration};

use tempfile::tempdir;

use super::*;
use crate::{error::report, layout::STAGING_LOCK, manifest::tests::manifest};

/// Writes the small manifest's bundle with this name of the model.
fn write(out: &Path, model: &str) -> Result<Bundle, Error> {
    let mut writer = BundleWriter::create(out)?;
    fill(&mut writer)?;
    writer.finish(&named(model))
}

fn fill(writer: &mut BundleWriter) -> Result<(), Error> {
    writer.add_bytes(b"vmfb")?;
    writer.add_bytes(b"{}")?;
    Ok(())
}

fn named(model: &str) -> Manifest {
    Manifest { model: model.into(), ..manifest() }
}

/// Returns the names in a folder, with hidden ones.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn written_bundles_open() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("made/on/the/way");
    let written = write(&out, "tiny").unwrap();
    assert_eq!(written, Bundle::open(&out).unwrap());
    assert_eq!(written.manifest(), &named("tiny"));
    assert_eq!(names(out.parent().unwrap()), ["way"]);
    assert_eq!(names(&out), ["blobs", "manifest.toml"]);
    // Equal manifests have equal bytes.
    let again = write(&folder.path().join("again"), "tiny").unwrap();
    let text = |bundle: &Bundle| fs::read(bundle.path().join(MANIFEST)).unwrap();
    assert_eq!(text(&written), text(&again));
}

#[test]
fn a_bundle_has_the_permissions_of_an_ordinary_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempdir().unwrap();
    let bundle = write(&folder.path().join("b"), "tiny").unwrap();
    let ordinary = folder.path().join("ordinary");
    fs::create_dir(&ordinary).unwrap();
    fs::write(ordinary.join("file"), "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(bundle.path()), mode(&ordinary));
    assert_eq!(
        mode(&bundle.blob_path(&bundle.manifest().files["config.json"])),
        mode(&ordinary.join("file"))
    );
}

#[test]
fn an_added_file_is_a_copy() {
    let folder = tempdir().unwrap();
    let source = folder.path().join("source");
    let bytes: Vec<u8> = (0..9_000_000u32).map(|i| (i % 253) as u8).collect();
    fs::write(&source, &bytes).unwrap();
    let mut writer = BundleWriter::create(&folder.path().join("b")).unwrap();
    fill(&mut writer).unwrap();
    let blob = writer.add_file(&source).unwrap();
    assert_eq!(blob, Blob::of(&bytes));
    assert_eq!(writer.add_file(&source).unwrap(), blob);
    let mut manifest = manifest();
    manifest.weights.insert("model.safetensors".into(), blob);
    let bundle = writer.finish(&manifest).unwrap();
    fs::write(&source, "changed").unwrap();
    assert_eq!(fs::read(bundle.blob_path(&blob)).unwrap(), bytes);
    Bundle::open(bundle.path()).unwrap();
}

#[test]
fn blobs_without_a_name_are_left_out() {
    let folder = tempdir().unwrap();
    let mut writer = BundleWriter::create(&folder.path().join("b")).unwrap();
    fill(&mut writer).unwrap();
    writer.add_bytes(b"forgotten").unwrap();
    let bundle = writer.finish(&manifest()).unwrap();
    assert_eq!(names(&bundle.path().join(BLOBS)).len(), 2);
}

#[test]
fn unfinished_bundles_leave_nothing() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    let mut writer = BundleWriter::create(&out).unwrap();
    fill(&mut writer).unwrap();
    // A crash at this point would leave files, but no bundle.
    let staged = names(folder.path());
    assert_eq!(staged.len(), 1);
    let staged = folder.path().join(&staged[0]);
    for path in [&out, &staged, &staged.join("bundle")] {
        assert!(matches!(Bundle::open(path), Err(Error::NotABundle { .. })));
    }
    drop(writer);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_bundle_is_replaced() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    write(&out, "old").unwrap();
    let mut writer = BundleWriter::create(&out).unwrap();
    fill(&mut writer).unwrap();
    assert_eq!(Bundle::open(&out).unwrap().manifest().model, "old");
    writer.finish(&named("new")).unwrap();
    assert_eq!(Bundle::open(&out).unwrap().manifest().model, "new");
    // A damaged bundle is replaced too.
    fs::write(out.join(MANIFEST), "garbage").unwrap();
    write(&out, "mended").unwrap();
    assert_eq!(Bundle::open(&out).unwrap().manifest().model, "mended");
    assert_eq!(names(folder.path()), ["b"]);
}

#[test]
fn an_empty_folder_is_filled() {
    let folder = tempdir().unwrap();
    write(folder.path(), "tiny").unwrap();
    Bundle::open(folder.path()).unwrap();
}

#[test]
fn other_files_and_folders_are_kept() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "mine").unwrap();
    fs::create_dir_all(at("folder/blobs")).unwrap();
    fs::write(at("folder/manifest.toml"), "format = 1").unwrap();
    fs::write(at("folder/notes"), "mine").unwrap();
    fs::create_dir_all(at("blobs-only/blobs")).unwrap();
    write(&at("strange-blob"), "tiny").unwrap();
    fs::write(at("strange-blob/blobs/notes"), "mine").unwrap();
    write(&at("bundle"), "tiny").unwrap();
    symlink(at("bundle"), at("link")).unwrap();
    let before = names(folder.path());
    for (name, found) in [
        ("file", "a file"),
        ("folder", "a folder with other files"),
        ("blobs-only", "a folder with other files"),
        ("strange-blob", "a folder with other files"),
        ("link", "a symbolic link"),
    ] {
        assert_eq!(
            write(&at(name), "tiny").unwrap_err().to_string(),
            format!(
                "{} exists and is {found}, expected a bundle or nothing\n\
                 hint: choose another folder, or remove this one",
                at(name).display()
            )
        );
    }
    assert_eq!(names(folder.path()), before);
    assert_eq!(fs::read(at("folder/notes")).unwrap(), b"mine");
    assert_eq!(
        BundleWriter::create(Path::new("..")).unwrap_err().to_string(),
        "`..` is not the name of a folder to write\n\
         hint: use a path that ends with a name, such as demo.bundle"
    );
}

#[test]
fn bundles_in_bundles_are_refused() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    write(&out, "tiny").unwrap();
    for inner in ["b/c", "b/blobs/c", "b/new/c"] {
        let inner = folder.path().join(inner);
        assert_eq!(
            BundleWriter::create(&inner).unwrap_err().to_string(),
            format!(
                "{} is in the bundle {}, expected a path outside of bundles\nhint: choose another folder",
                inner.display(),
                out.canonicalize().unwrap().display()
            )
        );
    }
    write(&out, "again").unwrap();
}

#[test]
fn the_files_of_killed_writers_are_removed() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    let age =
        |staging: &Path| File::open(staging.join(STAGING_LOCK)).unwrap().set_modified(hour_ago).unwrap();
    let staging = |name: &str| {
        let staging = folder.path().join(name);
        fs::create_dir(&staging).unwrap();
        fs::write(staging.join(STAGING_LOCK), "").unwrap();
        staging
    };
    age(&staging(".b.k1lled"));
    age(&staging(".c.k1lled"));
    // Folders of others: one that is too young, and two that no writer made.
    staging(".b.unaged");
    age(&staging(".b.d"));
    let other = staging(".b.backup");
    fs::write(other.join(STAGING_LOCK), "1234").unwrap();
    age(&other);
    fs::create_dir(folder.path().join(".b.mine")).unwrap();
    let alive = BundleWriter::create(&out).unwrap();
    age(alive.scratch());
    let alive_name = alive.scratch().file_name().unwrap().to_str().unwrap().to_owned();
    write(&out, "tiny").unwrap();
    let mut kept = [".b.mine", ".b.unaged", ".b.d", ".b.backup", &alive_name, ".c.k1lled", "b"];
    kept.sort_unstable();
    assert_eq!(names(folder.path()), kept);
}

#[test]
fn a_folder_that_appears_while_writing_is_kept() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    let mut writer = BundleWriter::create(&out).unwrap();
    fill(&mut writer).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("notes"), "mine").unwrap();
    assert!(matches!(writer.finish(&manifest()), Err(Error::Occupied { .. })));
    assert_eq!(fs::read(out.join("notes")).unwrap(), b"mine");
    assert_eq!(names(folder.path()), ["b"]);
}

#[test]
fn concurrent_writers_leave_one_valid_bundle() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    std::thread::scope(|scope| {
        for i in 0..8 {
            let out = &out;
            scope.spawn(move || write(out, &format!("model {i}")).unwrap());
        }
        // A concurrent reader sees no bundle or a complete one.
        for _ in 0..200 {
            match Bundle::open(&out) {
                Ok(_) | Err(Error::NotABundle { .. } | Error::MissingBlob { .. } | Error::Io { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
    Bundle::open(&out).unwrap();
    assert_eq!(names(folder.path()), ["b"]);
}

#[test]
fn a_manifest_must_fit_its_blobs() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    let finish = |change: fn(&mut Manifest)| {
        let mut writer = BundleWriter::create(&out).unwrap();
        fill(&mut writer).unwrap();
        let mut manifest = manifest();
        change(&mut manifest);
        writer.finish(&manifest).unwrap_err().to_string()
    };
    let hex = Digest::of(b"absent").hex();
    assert_eq!(
        finish(|m| m.targets.get_mut("cpu").unwrap().vmfb.digest = Digest::of(b"absent")),
        format!(
            "vmfb of target cpu was not added to the bundle: expected blobs/{hex}\n\
             hint: add it with `add_bytes` or `add_file` before `finish`"
        )
    );
    assert!(
        finish(|m| m.files.get_mut("config.json").unwrap().size = 3)
            .starts_with("file config.json has 2 bytes, expected 3: ")
    );
    assert!(
        finish(|m| m.plan.as_mut().unwrap().context = 0)
            .starts_with("invalid manifest: plan.context is 0, expected 1 to 2147483647\n")
    );
    assert!(names(folder.path()).is_empty());
}

#[test]
fn unreadable_sources() {
    let folder = tempdir().unwrap();
    let mut writer = BundleWriter::create(&folder.path().join("b")).unwrap();
    let missing = folder.path().join("missing");
    let error = writer.add_file(&missing).unwrap_err();
    assert_eq!(
        report(&error),
        format!(
            "error: cannot read {0}: No such file or directory (os error 2)\n\
             hint: check the path with `ls -ld {0}`",
            missing.display()
        )
    );
    let error = writer.add_file(folder.path()).unwrap_err();
    assert_eq!(
        report(&error),
        format!(
            "error: cannot read {0}: not a regular file\n\
             hint: check what is there with `ls -ld {0}`, then repeat the command",
            folder.path().display()
        )
    );
    // The writer still works.
    fill(&mut writer).unwrap();
    Bundle::open(writer.finish(&manifest()).unwrap().path()).unwrap();
}

#[test]
fn unwritable_destinations() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let out = folder.path().join("file/b");
    let error = BundleWriter::create(&out).unwrap_err();
    assert_eq!(
        report(&error),
        format!(
            "error: cannot write {0}: Not a directory (os error 20)\n\
             hint: check what is there with `ls -ld {0}`, then repeat the command",
            out.display()
        )
    );
    assert_eq!(names(folder.path()), ["file"]);
}

/// The environment variable with which `disk_full_child` runs as the child of `a_full_disk`. Without it, it does nothing.
const CHILD: &str = "MLXCEL_TEST_FULL_DISK";

#[test]
fn a_full_disk() {
    let folder = tempdir().unwrap();
    let source = folder.path().join("source");
    fs::write(&source, vec![1; 3_000_000]).unwrap();
    // Runs a child, because the limit is the process's. It stands in for a full disk: a write fails in the middle of a blob.
    // `ulimit -f` counts blocks of 512 or 1024 bytes, depending on the shell.
    let shell = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" --exact bundle::write::tests::disk_full_child";
    let out = Command::new("sh")
        .args(["-c", shell])
        .arg(env::current_exe().unwrap())
        .env(CHILD, folder.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    assert!(String::from_utf8_lossy(&out.stdout).contains("1 passed"));
    assert_eq!(names(folder.path()), ["b", "source"]);
    assert_eq!(Bundle::open(&folder.path().join("b")).unwrap().manifest().model, "old");
}

#[test]
fn disk_full_child() {
    let Some(folder) = env::var_os(CHILD).map(PathBuf::from) else { return };
    let out = folder.join("b");
    write(&out, "old").unwrap();
    let hint = "hint: free some disk space, or use a path on another disk";
    let expected = format!("error: cannot write {}: File too large (os error 27)\n{hint}", out.display());
    let mut writer = BundleWriter::create(&out).unwrap();
    assert_eq!(report(&writer.add_file(&folder.join("source")).unwrap_err()), expected);
    assert_eq!(report(&writer.add_bytes(&[2; 3_000_000]).unwrap_err()), expected);
    let store = crate::Store::new(folder.join("store"), None).unwrap();
    let error = store.put(&Digest::of(b"key"), &folder.join("source")).unwrap_err();
    assert!(
        report(&error).ends_with(&format!(": File too large (os error 27)\n{hint}")),
        "{}",
        report(&error)
    );
    assert_eq!(store.get(&Digest::of(b"key")).unwrap(), None);
    assert!(names(&folder.join("store/incoming")).is_empty());
    fs::remove_dir_all(folder.join("store")).unwrap();
}

#[test]
fn a_bundle_that_is_being_changed_is_replaced_afterwards() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("b");
    let before = write(&out, "before").unwrap();
    let lock = before.lock_unchanged(&out).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&out, "after").unwrap());
        thread::sleep(Duration::from_millis(300));
        assert!(!writer.is_finished() && Bundle::open(&out).unwrap().manifest().model == "before");
        drop(lock);
        writer.join().unwrap();
    });
    assert_eq!(Bundle::open(&out).unwrap().manifest().model, "after");
    assert!(matches!(before.lock_unchanged(&out), Err(Error::Changed { .. })));
}
