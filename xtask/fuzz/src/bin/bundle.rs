//! Fuzzes opening a folder: any manifest and signature, with valid blobs.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use mlxcel_artifacts::{Bundle, Digest, Machine, check_targets};
use mlxcel_fuzz::two_files;

fuzz_target!(|bytes: &[u8]| {
    let (manifest, signature) = two_files(bytes);
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = folder.path().join("blobs");
    fs::create_dir(&blobs).expect("a folder");
    for bytes in [&b"vmfb"[..], b"{}"] {
        fs::write(blobs.join(Digest::of(bytes).hex()), bytes).expect("a blob");
    }
    fs::write(folder.path().join("manifest.toml"), manifest).expect("a manifest");
    fs::write(folder.path().join("manifest.toml.minisig"), signature).expect("a signature");
    if let Ok(bundle) = Bundle::open(folder.path()) {
        _ = bundle.signature_info();
        _ = check_targets(bundle.manifest(), &Machine::host());
    }
});
