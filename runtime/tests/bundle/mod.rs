//! Bundles for tests, which are valid but contain no code.

use std::path::Path;

use mlxcel_artifacts::{Blob, Bundle, BundleWriter, Driver, Machine, Manifest, entry::Parameter, sample};
use safetensors::Dtype;

/// Writes a bundle for this machine with these files and weights.
///
/// It has a context of 16 tokens, a vocabulary of 8, and one f32 parameter `a` of two elements.
pub(crate) fn write(out: &Path, files: &[(&str, &str)], weights: &[(&str, &str)]) -> Bundle {
    let mut writer = BundleWriter::create(out).unwrap();
    let mut add = |files: &[(&str, &str)]| {
        let add = |&(name, text): &(&str, &str)| (name.into(), writer.add_bytes(text.as_bytes()).unwrap());
        files.iter().map(add).collect::<Vec<(String, Blob)>>()
    };
    let (files, weights) = (add(files), add(weights));
    let vmfb = writer.add_bytes(b"no vmfb").unwrap();
    let cpu = sample::target(Driver::Local, &Machine::host().arch, vmfb, 16, 8);
    let manifest = Manifest {
        targets: [("cpu".to_string(), cpu)].into(),
        files: files.into_iter().collect(),
        weights: weights.into_iter().collect(),
        parameters: vec![Parameter::new("a", Dtype::F32, &[2])],
        ..sample::manifest(16, 8)
    };
    writer.finish(&manifest).unwrap()
}
