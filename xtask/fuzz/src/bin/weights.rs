//! Fuzzes safetensors files and their index: every tensor is inside its file.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use mlxcel_fuzz::two_files;
use mlxcel_runtime::Weights;

fuzz_target!(|bytes: &[u8]| {
    let (file, index) = two_files(bytes);
    let folder = tempfile::tempdir().expect("a folder");
    let name = if index.is_empty() { "model.safetensors" } else { "model-00001-of-00001.safetensors" };
    fs::write(folder.path().join(name), file).expect("a file");
    if !index.is_empty() {
        fs::write(folder.path().join("model.safetensors.index.json"), index).expect("an index");
    }
    if let Ok(weights) = Weights::from_folder(folder.path()) {
        for name in weights.names() {
            assert!(weights.tensor(name).expect("a tensor that it names").len() <= file.len());
        }
    }
});
