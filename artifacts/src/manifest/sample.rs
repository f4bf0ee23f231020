//! Manifests for tests: valid, of a small model, without code that runs.
//!
//! Tests change the fields that they are about. So a new field of the manifest changes only this file.

use std::collections::BTreeMap;

use safetensors::Dtype;

use super::{
    Compiler, FORMAT, Manifest, ModelSpec, Serving, TargetArtifact,
    entry::{
        ArgumentKind, ArgumentSpec, CallSizes, Entry, Interface, PAGE, PagePart, Pool, ResultKind,
        ResultSpec, Role,
    },
    numerics::{CacheType, Float, Quant},
    program::{BundleKind, ProgramSpec},
};
use crate::{blob::Blob, digest::Digest, driver::Driver, iree::IREE_VERSION};

/// Returns a manifest without targets, files, weights and parameters.
#[must_use]
pub fn manifest(context: usize, vocab: usize) -> Manifest {
    Manifest {
        format: FORMAT,
        model: "tiny".into(),
        kind: BundleKind::Model,
        family: "llama".into(),
        plan: Some(ModelSpec {
            precision: Float::F32,
            quant: Quant::None,
            cache_type: CacheType::Float(Float::F32),
            batch: None,
            context,
            vocab,
            position_bytes: 64,
            windows: vec![],
            embedding: None,
        }),
        program: None,
        compiler: Compiler { version: IREE_VERSION.into(), digest: Digest::of(b"compiler") },
        targets: BTreeMap::new(),
        files: BTreeMap::new(),
        weights: BTreeMap::new(),
        documents: BTreeMap::new(),
        replays: vec![],
        goldens: vec![],
        parameters: vec![],
    }
}

/// Returns the role of a call of `rows` rows of at most `sequences` sequences, each with one selected row.
#[must_use]
pub fn step(rows: usize, sequences: usize) -> Role {
    Role::Step(CallSizes { rows, sequences, selected: sequences, uniform: false, in_place: false })
}

/// Returns a cache of two heads of 8 dimensions in one layer, in `f32`.
#[must_use]
pub fn pools() -> Vec<Pool> {
    vec![Pool { window: None, parts: vec![PagePart { dtype: Dtype::F32, shape: vec![2, 2, PAGE, 8] }] }]
}

/// Returns an entry for a model with this context and vocabulary, and with [`pools`].
#[must_use]
pub fn entry(role: Role, context: usize, vocab: usize) -> Entry {
    Entry::new(role, &Interface { context, width: vocab, pools: &pools() })
}

/// Returns a target that runs on any machine with this driver and architecture. Its entries are `step_1` and `step_4`.
#[must_use]
pub fn target(driver: Driver, arch: &str, vmfb: Blob, context: usize, vocab: usize) -> TargetArtifact {
    TargetArtifact {
        driver,
        arch: arch.into(),
        cpu_features: vec![],
        gpu: None,
        flags: vec![],
        build_key: Digest::of(b"key"),
        vmfb,
        entries: [step(1, 1), step(4, 2)].map(|role| entry(role, context, vocab)).to_vec(),
        serving: Some(Serving { page: PAGE, exact: true, pools: pools() }),
        step_bytes: 32,
        rewind: None,
        dispatches: BTreeMap::new(),
        packing: None,
    }
}

/// Returns a program's function, `step(w, x) -> (w, loss)`, which takes `w` away.
#[must_use]
pub fn function() -> Entry {
    let vector = vec![100];
    let argument = |name: &str, kind| ArgumentSpec {
        name: (!name.is_empty()).then(|| name.to_owned()),
        kind,
        dtype: Dtype::F32,
        shape: vector.clone(),
    };
    let result = |name: &str, shape: &[usize]| ResultSpec {
        name: Some(name.to_owned()),
        kind: ResultKind::Output,
        dtype: Dtype::F32,
        shape: shape.to_vec(),
    };
    Entry {
        name: "step".into(),
        function: None,
        role: Role::Function,
        work: 0,
        arguments: vec![
            argument("w", ArgumentKind::State { result: 0 }),
            argument("x", ArgumentKind::Input),
            argument("", ArgumentKind::Storage { result: 0 }),
        ],
        results: vec![result("w", &[100]), result("loss", &[])],
    }
}

/// Returns the manifest of a program with [`function`] for the target `cpu`.
#[must_use]
pub fn program(arch: &str, vmfb: Blob) -> Manifest {
    let cpu = TargetArtifact {
        entries: vec![function()],
        serving: None,
        step_bytes: 0,
        ..target(Driver::Local, arch, vmfb, 64, 100)
    };
    Manifest {
        kind: BundleKind::Program,
        model: "step".into(),
        family: String::new(),
        plan: None,
        program: Some(ProgramSpec { stablehlo: Some("1.15.0".into()), source: Digest::of(b"program") }),
        targets: [("cpu".to_owned(), cpu)].into(),
        ..manifest(64, 100)
    }
}
