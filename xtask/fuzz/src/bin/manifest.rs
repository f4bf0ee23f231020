//! Fuzzes manifests: an accepted one is equal after writing and reading it again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mlxcel_artifacts::Manifest;

fuzz_target!(|text: &str| {
    let Ok(manifest) = Manifest::parse(text) else { return };
    let written = manifest.render().expect("a valid manifest");
    assert_eq!(Manifest::parse(&written).expect("what was written"), manifest);
});
