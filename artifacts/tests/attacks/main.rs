//! Hostile and damaged bundles. None opens, and each gets one clear message.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod archives;
mod blobs;
mod manifests;
mod seeds;
mod signatures;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{
    Blob, Bundle, BundleWriter, Digest, Driver, Error, Manifest, TargetArtifact, entry::Parameter, sample,
};
use tempfile::TempDir;

#[path = "../common/masked.rs"]
mod masks;

use masks::masked;

const VMFB: &[u8] = b"the module";
const CONFIG: &[u8] = b"{\"model_type\": \"llama\"}";
const WEIGHTS: &[u8] = &[7; 100_000];

/// The hint of every message about a damaged blob.
const DAMAGED: &str =
    "\nhint: the bundle is damaged: copy all of its files again, or compile it again with `mlxcel-compile`";

/// A bundle to be damaged.
struct Victim {
    /// Holds the bundle, and files that a test puts outside of it.
    folder: TempDir,
    manifest: Manifest,
}

impl Victim {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = BundleWriter::create(&folder.path().join("b")).unwrap();
        let weights = Parameter {
            source: Some(Digest::of(WEIGHTS)),
            ..Parameter::new("w", safetensors::Dtype::F32, &[4, 8])
        };
        let manifest = Manifest {
            targets: [("cpu".to_string(), cpu(writer.add_bytes(VMFB).unwrap()))].into(),
            files: [("config.json".to_string(), writer.add_bytes(CONFIG).unwrap())].into(),
            weights: [("model.safetensors".to_string(), writer.add_bytes(WEIGHTS).unwrap())].into(),
            parameters: vec![weights],
            ..sample::manifest(64, 100)
        };
        writer.finish(&manifest).unwrap();
        Self { folder, manifest }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("b")
    }

    fn blob(&self, bytes: &[u8]) -> PathBuf {
        self.path().join("blobs").join(Digest::of(bytes).hex())
    }

    fn open(&self) -> Result<Bundle, Error> {
        Bundle::open(&self.path())
    }

    fn message(&self) -> String {
        self.open().unwrap_err().to_string()
    }

    /// Replaces the first `from` in the manifest's text.
    fn edit(&self, from: &str, to: &str) {
        let path = self.path().join("manifest.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }
}

fn cpu(vmfb: Blob) -> TargetArtifact {
    TargetArtifact {
        cpu_features: vec!["avx2".into()],
        flags: vec!["--iree-opt-level=O3".into()],
        ..sample::target(Driver::Local, "x86_64", vmfb, 64, 100)
    }
}

#[test]
fn an_undamaged_bundle_opens() {
    let victim = Victim::new();
    let bundle = victim.open().unwrap();
    assert_eq!(*bundle.manifest(), victim.manifest);
    assert_eq!(bundle.read_file("config.json").unwrap().unwrap(), CONFIG);
    assert_eq!(bundle.read_file("../manifest.toml").unwrap(), None);
    let weights: Vec<(&str, PathBuf)> = bundle.weights().unwrap();
    assert_eq!(weights, [("model.safetensors", victim.blob(WEIGHTS))]);
    let inside = |path: &Path| path.starts_with(victim.path().join("blobs"));
    assert!(weights.iter().all(|(_, path)| inside(path)));
}
