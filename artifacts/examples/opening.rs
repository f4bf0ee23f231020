//! Measures how long verifying and opening a bundle take: `opening FOLDER [REPEATS]`.
//!
//! Each line has five times in milliseconds: reading and verifying from the disk, reading and verifying from the page cache,
//! and opening a bundle that was verified before. `cargo xtask opening` makes a table of them.

#![allow(clippy::print_stdout, reason = "a program")]

use std::{
    collections::BTreeSet,
    env,
    error::Error,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    time::Instant,
};

use mlxcel_artifacts::{Bundle, Manifest, Store};
use rustix::fs::{Advice, fadvise};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("expected a bundle's folder as the first argument")?);
    let repeats = arguments.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(5);
    let store = Store::from_env(None)?;
    // The store remembers from here on that the files are intact.
    open(&store, &path)?;
    for _ in 0..repeats {
        let bundle = store.open_without_weights(&path)?;
        let files = files(&bundle);
        drop_from_page_cache(&files)?;
        let cold_read = milliseconds(|| read(&files))?;
        drop_from_page_cache(&files)?;
        let cold_verify = milliseconds(|| verify(&path))?;
        let read = milliseconds(|| read(&files))?;
        let verify = milliseconds(|| verify(&path))?;
        let open = milliseconds(|| open(&store, &path))?;
        println!("{cold_read:.2} {cold_verify:.2} {read:.2} {verify:.2} {open:.2}");
    }
    Ok(())
}

/// The result of a step.
type Done = Result<(), Box<dyn Error>>;

/// Returns the time that `work` takes.
fn milliseconds(work: impl FnOnce() -> Done) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn files(bundle: &Bundle) -> BTreeSet<PathBuf> {
    bundle.manifest().blobs().map(|(_, blob)| bundle.blob_path(blob)).collect()
}

/// Drops the files from the page cache.
fn drop_from_page_cache(files: &BTreeSet<PathBuf>) -> Done {
    for path in files {
        let file = File::open(path)?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

fn verify(path: &Path) -> Done {
    Bundle::open(path)?;
    Ok(())
}

/// Reads every file once.
fn read(files: &BTreeSet<PathBuf>) -> Done {
    let mut buffer = vec![0; 4 << 20];
    for path in files {
        let mut file = File::open(path)?;
        while file.read(&mut buffer)? > 0 {}
    }
    Ok(())
}

/// Opens the bundle as the runtime does, and reads its code, its small files and the paths of its weights.
fn open(store: &Store, path: &Path) -> Done {
    let bundle = store.open_without_weights(path)?;
    let Manifest { targets, files, .. } = bundle.manifest();
    for blob in targets.values().map(|target| &target.vmfb).chain(files.values()) {
        bundle.read_blob(blob, &mut vec![0; usize::try_from(blob.size)?])?;
    }
    bundle.weights()?;
    for target in targets.keys() {
        bundle.packed_weights(target)?;
    }
    Ok(())
}
