//! Bundles made to mislead, and bundles that something happened to. Each gets one clear message; none opens.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod archives;
mod blobs;
mod manifests;
mod signatures;
mod table;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{
    Blob, Bundle, BundleWriter, Compiler, Digest, Driver, Error, FORMAT, IREE_VERSION, Manifest, Plan,
    TargetArtifact,
    signature::{Entry, Parameter, Role},
};
use tempfile::TempDir;

#[path = "../common/masked.rs"]
mod masks;

use masks::masked;

const VMFB: &[u8] = b"the module";
const CONFIG: &[u8] = b"{\"model_type\": \"llama\"}";
const WEIGHTS: &[u8] = &[7; 100_000];

/// What follows every message about a damaged blob.
const DAMAGED: &str =
    "\nhint: the bundle is damaged: copy it again with all of its blobs, or compile it again";

/// A whole bundle in a folder of its own, to be damaged.
struct Victim {
    /// Holds the bundle; also a place for what lies outside of it.
    folder: TempDir,
    manifest: Manifest,
}

impl Victim {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = BundleWriter::create(&folder.path().join("b")).unwrap();
        let manifest = Manifest {
            format: FORMAT,
            model: "tiny".into(),
            family: "llama".into(),
            plan: Plan {
                precision: "f32".into(),
                quant: "none".into(),
                kv: "f32".into(),
                batch: 1,
                context: 64,
                vocab: 100,
                position_bytes: 64,
                windows: vec![],
                embedding: None,
            },
            compiler: Compiler { version: IREE_VERSION.into(), digest: Digest::of(b"compiler") },
            targets: [("cpu".to_string(), cpu(writer.add_bytes(VMFB).unwrap()))].into(),
            files: [("config.json".to_string(), writer.add_bytes(CONFIG).unwrap())].into(),
            weights: [("model.safetensors".to_string(), writer.add_bytes(WEIGHTS).unwrap())].into(),
            documents: BTreeMap::new(),
            replays: vec![],
            parameters: vec![Parameter {
                name: "w".into(),
                dtype: safetensors::Dtype::F32,
                shape: vec![4, 8],
                source: Some(Digest::of(WEIGHTS)),
                aliases: vec![],
            }],
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

    /// Replaces `from` in the manifest's text, which must have it.
    fn edit(&self, from: &str, to: &str) {
        let path = self.path().join("manifest.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }

    /// The message after one edit of the manifest of a whole bundle.
    fn edited(from: &str, to: &str) -> String {
        let victim = Self::new();
        victim.edit(from, to);
        victim.message()
    }
}

fn cpu(vmfb: Blob) -> TargetArtifact {
    TargetArtifact {
        driver: Driver::Local,
        arch: "x86_64".into(),
        cpu_features: vec!["avx2".into()],
        gpu: None,
        flags: vec!["--iree-opt-level=O3".into()],
        build_key: Digest::of(b"key"),
        vmfb,
        entries: vec![
            Entry::new(Role::Prefill { tokens: 16 }, 1, 100),
            Entry::new(Role::Decode { cache: 64 }, 1, 100),
        ],
        step_bytes: 32,
        rewind: None,
        dispatches: BTreeMap::new(),
        packing: None,
    }
}

#[test]
fn untouched_it_opens() {
    let victim = Victim::new();
    let bundle = victim.open().unwrap();
    assert_eq!(*bundle.manifest(), victim.manifest);
    assert_eq!(fs::read(bundle.file("config.json").unwrap()).unwrap(), CONFIG);
    assert_eq!(bundle.file("../manifest.toml"), None);
    let weights: Vec<(&str, PathBuf)> = bundle.weights().unwrap();
    assert_eq!(weights, [("model.safetensors", victim.blob(WEIGHTS))]);
    let inside = |path: &Path| path.starts_with(victim.path().join("blobs"));
    assert!(weights.iter().all(|(_, path)| inside(path)));
}
