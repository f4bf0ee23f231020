//! The seeds of the fuzz targets are valid. A fuzzer learns little from bytes that are refused at once.

use std::{fs, path::Path};

use mlxcel_artifacts::{Bundle, BundleWriter, Digest, Manifest};

#[path = "../../../xtask/fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call it")]
mod framing;

/// Reads the seeds of a fuzz target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xtask/fuzz/corpus").join(target);
    let seeds: Vec<_> =
        fs::read_dir(folder).unwrap().map(|seed| fs::read(seed.unwrap().path()).unwrap()).collect();
    assert!(!seeds.is_empty(), "{target}");
    seeds
}

#[test]
fn manifests() {
    for seed in seeds("manifest") {
        Manifest::parse(str::from_utf8(&seed).unwrap()).unwrap();
    }
}

#[test]
fn archives() {
    let folder = tempfile::tempdir().unwrap();
    for (n, seed) in seeds("archive").iter().enumerate() {
        let to = BundleWriter::create(&folder.path().join(n.to_string())).unwrap();
        Bundle::import(&mut &seed[..], Path::new("seed"), Box::new(to)).unwrap();
    }
}

#[test]
fn bundles() {
    for seed in seeds("bundle") {
        let (manifest, signature) = framing::two_files(&seed);
        let folder = tempfile::tempdir().unwrap();
        let blobs = folder.path().join("blobs");
        fs::create_dir(&blobs).unwrap();
        for bytes in [&b"vmfb"[..], b"{}"] {
            fs::write(blobs.join(Digest::of(bytes).hex()), bytes).unwrap();
        }
        fs::write(folder.path().join("manifest.toml"), manifest).unwrap();
        fs::write(folder.path().join("manifest.toml.minisig"), signature).unwrap();
        assert!(Bundle::open(folder.path()).unwrap().signature_info().unwrap().is_some());
    }
}
