//! Manifests for the tests of whoever reads them: valid, of a small model, with nothing in them that runs.
//!
//! Tests take what they need of it and say only what they are about, so that a new field of a manifest is written here once.

use std::collections::BTreeMap;

use super::{
    Compiler, FORMAT, Manifest, ModelSpec, TargetArtifact,
    entry::{Entry, Role},
    numerics::{CacheType, Float, Quant},
};
use crate::{blob::Blob, digest::Digest, driver::Driver, iree::IREE_VERSION};

/// A manifest of this model: a context of `context` tokens of `vocab` ids, and no targets, files, weights or parameters.
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

/// A target that any machine with such a driver runs, of the CPU's architecture `arch`, with these entries for a vocabulary
/// of `vocab` ids.
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
