//! What it costs to know that a bundle is whole: `opening BUNDLE [REPEATS]` reads its files, verifies it, and opens it once it
//! was verified. A line each time, in milliseconds: read, verify, open; `cargo xtask opening` makes a table of them.

#![allow(clippy::print_stdout, reason = "a program")]

use std::{
    env,
    error::Error,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use mlxcel_artifacts::Bundle;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("expected a bundle's folder")?);
    let repeats = arguments.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(5);
    // Into the cache of the system, and known to be whole.
    open(&path)?;
    for _ in 0..repeats {
        let milliseconds = |took: Duration| took.as_secs_f64() * 1e3;
        let bundle = Bundle::open_without_weights(&path)?;
        let start = Instant::now();
        read(&bundle)?;
        let reading = start.elapsed();
        let start = Instant::now();
        Bundle::open(&path)?;
        let verifying = start.elapsed();
        let start = Instant::now();
        open(&path)?;
        let opening = start.elapsed();
        println!("{:.2} {:.2} {:.2}", milliseconds(reading), milliseconds(verifying), milliseconds(opening));
    }
    Ok(())
}

/// Every file once, to nowhere.
fn read(bundle: &Bundle) -> Result<(), Box<dyn Error>> {
    let mut buffer = vec![0; 4 << 20];
    let mut seen = std::collections::HashSet::new();
    for (_, blob) in bundle.manifest().blobs() {
        if seen.insert(blob.digest) {
            let mut file = File::open(bundle.blob_path(blob))?;
            while file.read(&mut buffer)? > 0 {}
        }
    }
    Ok(())
}

/// As a program does that runs the bundle: its code, its small files, and all of its weights.
fn open(path: &Path) -> Result<(), Box<dyn Error>> {
    let bundle = Bundle::open_without_weights(path)?;
    bundle.weights()?;
    for target in bundle.manifest().targets.keys() {
        bundle.packed_weights(target)?;
    }
    Ok(())
}
