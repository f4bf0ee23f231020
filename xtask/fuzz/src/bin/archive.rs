//! Fuzzes importing: a refused archive leaves no file, and an imported bundle opens.
#![no_main]

use std::{fs, path::Path};

use libfuzzer_sys::fuzz_target;
use mlxcel_artifacts::{Bundle, BundleWriter};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("bundle");
    let to = BundleWriter::create(&out).expect("room");
    match Bundle::import(&mut &*bytes, Path::new("archive"), Box::new(to)) {
        Ok(bundle) => {
            assert_eq!(Bundle::open(&out).expect("what was imported"), bundle);
            _ = bundle.signature_info();
        }
        Err(_) => assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0),
    }
});
