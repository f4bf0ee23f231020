//! Manifests for tests: valid, of a small model, without code that runs.
//!
//! Tests change the fields that they are about. So a new field of the manifest changes only this file.

use std::collections::BTreeMap;

use super::{
    Compiler, FORMAT, Manifest, ModelSpec, TargetArtifact,
    entry::{Entry, Role},
    numerics::{CacheType, Float, Quant},
};
use crate::{blob::Blob, digest::Digest, driver::Driver, iree::IREE_VERSION};

/// Returns a manifest without targets, files, weights and parameters.
#[must_use]
pub fn manifest(context: usize, vocab: usize) -> Manifest {
    Manifest {
        format: FORMAT,
        model: "tiny".into(),
        family: "llama".into(),
        plan: ModelSpec {
            precision: Float::F32,
            quant: Quant::None,
            cache_type: CacheType::Float(Float::F32),
            batch: 1,
            context,
            vocab,
            position_bytes: 64,
            windows: vec![],
            embedding: None,
        },
        compiler: Compiler { version: IREE_VERSION.into(), digest: Digest::of(b"compiler") },
        targets: BTreeMap::new(),
        files: BTreeMap::new(),
        weights: BTreeMap::new(),
        documents: BTreeMap::new(),
        replays: vec![],
        parameters: vec![],
    }
}

/// Returns a target that runs on any machine with this driver and architecture.
#[must_use]
pub fn target(driver: Driver, arch: &str, vmfb: Blob, roles: &[Role], vocab: usize) -> TargetArtifact {
    TargetArtifact {
        driver,
        arch: arch.into(),
        cpu_features: vec![],
        gpu: None,
        flags: vec![],
        build_key: Digest::of(b"key"),
        vmfb,
        entries: roles.iter().map(|&role| Entry::new(role, 1, vocab)).collect(),
        step_bytes: 32,
        rewind: None,
        dispatches: BTreeMap::new(),
        packing: None,
    }
}
