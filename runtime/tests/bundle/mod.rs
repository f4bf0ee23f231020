//! Bundles for tests: whole, but with nothing in them that runs.

use std::{collections::BTreeMap, path::Path};

use mlxcel_artifacts::{
    Blob, Bundle, BundleWriter, Compiler, Digest, Driver, FORMAT, IREE_VERSION, Machine, Manifest, Plan,
    TargetArtifact,
    signature::{Entry, Parameter, Role},
};
use safetensors::Dtype;

/// A bundle for this machine with a context of 16 tokens, 8 ids, one f32 parameter `a` of two elements, and these files
/// and weights.
pub(crate) fn write(out: &Path, files: &[(&str, &str)], weights: &[(&str, &str)]) -> Bundle {
    let mut writer = BundleWriter::create(out).unwrap();
    let mut add = |files: &[(&str, &str)]| {
        let add = |&(name, text): &(&str, &str)| (name.into(), writer.add_bytes(text.as_bytes()).unwrap());
        files.iter().map(add).collect::<Vec<(String, Blob)>>()
    };
    let (files, weights) = (add(files), add(weights));
    let cpu = TargetArtifact {
        driver: Driver::Local,
        arch: Machine::this().arch,
        cpu_features: vec![],
        gpu: None,
        flags: vec![],
        build_key: Digest::of(b"key"),
        vmfb: writer.add_bytes(b"no vmfb").unwrap(),
        entries: vec![
            Entry::new(Role::Prefill { tokens: 4 }, 1, 8),
            Entry::new(Role::Decode { cache: 16 }, 1, 8),
        ],
        step_bytes: 32,
        rewind: None,
        dispatches: BTreeMap::new(),
        packing: None,
    };
    let manifest = Manifest {
        format: FORMAT,
        model: "tiny".into(),
        family: "llama".into(),
        plan: Plan {
            precision: "f32".into(),
            quant: "none".into(),
            kv: "f32".into(),
            batch: 1,
            context: 16,
            vocab: 8,
            position_bytes: 64,
            windows: vec![],
            embedding: None,
        },
        compiler: Compiler { version: IREE_VERSION.into(), digest: Digest::of(b"compiler") },
        targets: [("cpu".to_string(), cpu)].into(),
        files: files.into_iter().collect(),
        weights: weights.into_iter().collect(),
        documents: BTreeMap::new(),
        replays: vec![],
        parameters: vec![Parameter {
            name: "a".into(),
            dtype: Dtype::F32,
            shape: vec![2],
            source: None,
            aliases: vec![],
        }],
    };
    writer.finish(&manifest).unwrap()
}
