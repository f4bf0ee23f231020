//! Fuzzes files of tensors: what can be read is equal after writing and reading it again.
#![no_main]

use std::{collections::BTreeMap, fs};

use libfuzzer_sys::fuzz_target;
use mlxcel_artifacts::{TensorFile, write_tensors};

/// The most bytes of a tensor that is read. Callers compare types before they read.
const LARGEST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("found");
    fs::write(&path, bytes).expect("room");
    let Ok(file) = TensorFile::open(&path) else { return };
    let mut tensors = BTreeMap::new();
    for (name, dtype, shape) in file.tensors() {
        let is_small = mlxcel_artifacts::tensor_bytes(dtype, shape).is_some_and(|bytes| bytes <= LARGEST);
        if let Some(tensor) = is_small.then(|| file.read(name).ok()).flatten() {
            tensors.insert(name.to_owned(), tensor);
        }
    }
    let written = folder.path().join("written.safetensors");
    if write_tensors(&written, &tensors).is_ok() {
        let again = TensorFile::open(&written).expect("what was written");
        for (name, tensor) in &tensors {
            assert_eq!(again.read(name).expect("what was written"), *tensor);
        }
    }
});
