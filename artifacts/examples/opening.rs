//! What it costs to know that a bundle is whole: `opening BUNDLE [REPEATS]` reads its files and verifies it, first from the disk
//! and then from the system's cache, and opens it once it was verified. A line each time, in milliseconds: read and verify
//! from the disk, read and verify from the cache, open; `cargo xtask opening` makes a table of them.

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

use mlxcel_artifacts::{Bundle, Manifest};
use rustix::fs::{Advice, fadvise};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("expected a bundle's folder")?);
    let repeats = arguments.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(5);
    // Known to be whole from here on.
    open(&path)?;
    for _ in 0..repeats {
        let bundle = Bundle::open_without_weights(&path)?;
        let files = files(&bundle);
        forget(&files)?;
        let cold_read = milliseconds(|| read(&files))?;
        forget(&files)?;
        let cold_verify = milliseconds(|| verify(&path))?;
        let read = milliseconds(|| read(&files))?;
        let verify = milliseconds(|| verify(&path))?;
        let open = milliseconds(|| open(&path))?;
        println!("{cold_read:.2} {cold_verify:.2} {read:.2} {verify:.2} {open:.2}");
    }
    Ok(())
}

type Done = Result<(), Box<dyn Error>>;

fn milliseconds(work: impl FnOnce() -> Done) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn files(bundle: &Bundle) -> BTreeSet<PathBuf> {
    bundle.manifest().blobs().map(|(_, blob)| bundle.blob_path(blob)).collect()
}

/// Has the system drop the files from its cache.
fn forget(files: &BTreeSet<PathBuf>) -> Done {
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

/// Every file once, to nowhere.
fn read(files: &BTreeSet<PathBuf>) -> Done {
    let mut buffer = vec![0; 4 << 20];
    for path in files {
        let mut file = File::open(path)?;
        while file.read(&mut buffer)? > 0 {}
    }
    Ok(())
}

/// As a program does that runs the bundle: its code and its small files, whose bytes it verifies as it reads them, and all of
/// its weights.
fn open(path: &Path) -> Done {
    let bundle = Bundle::open_without_weights(path)?;
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
