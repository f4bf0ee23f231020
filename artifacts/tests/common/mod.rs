//! A small bundle, and the program.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]
#![allow(dead_code, unreachable_pub, reason = "every test program uses its own part of it")]

pub mod kill;
pub mod masked;
pub mod registry;

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Output},
};

use mlxcel_artifacts::{
    BundleWriter, Compiler, Digest, Driver, FORMAT, IREE_VERSION, Manifest, Packing, Plan, TargetArtifact,
    signature::{Entry, PackStep, Parameter, Role},
};
use safetensors::Dtype;

/// Writes a bundle with these weights, changed as asked.
pub fn write(out: &Path, weights: &[u8], change: impl FnOnce(&mut Manifest)) {
    let mut writer = BundleWriter::create(out).unwrap();
    let parameter = |name: &str, dtype| Parameter {
        name: name.into(),
        dtype,
        shape: vec![25, 100],
        source: Some(Digest::of(weights)),
        aliases: vec![],
    };
    let step = PackStep {
        entry: Some("panels_0".into()),
        sources: vec!["model.layers.0.w".into()],
        results: vec![parameter("model.layers.0.w.panels", Dtype::F32)],
    };
    let cpu = TargetArtifact {
        driver: Driver::Local,
        arch: "x86_64".into(),
        cpu_features: vec!["avx2".into(), "fma".into()],
        gpu: None,
        flags: vec!["--iree-opt-level=O3".into()],
        build_key: Digest::of(b"cpu"),
        vmfb: writer.add_bytes(&[4; 5_000]).unwrap(),
        entries: vec![
            Entry::new(Role::Prefill { tokens: 32 }, 1, 100),
            Entry::new(Role::Decode { cache: 512 }, 1, 100),
        ],
        step_bytes: 32,
        rewind: None,
        dispatches: BTreeMap::new(),
        packing: Some(Packing {
            build_key: Digest::of(b"packing"),
            vmfb: writer.add_bytes(&[5; 700]).unwrap(),
            weights: Some(writer.add_bytes(weights).unwrap()),
            made_from: BTreeMap::new(),
            steps: vec![step],
        }),
    };
    let mut manifest = Manifest {
        format: FORMAT,
        model: "tiny".into(),
        family: "llama".into(),
        plan: Plan {
            precision: "bf16".into(),
            quant: "none".into(),
            kv: "bf16".into(),
            batch: 1,
            context: 512,
            vocab: 100,
            position_bytes: 64,
            windows: vec![],
            embedding: None,
        },
        compiler: Compiler { version: IREE_VERSION.into(), digest: Digest::of(b"compiler") },
        targets: [("cpu".to_string(), cpu)].into(),
        files: [("config.json".to_string(), writer.add_bytes(b"{}").unwrap())].into(),
        weights: [("model.safetensors".to_string(), writer.add_bytes(weights).unwrap())].into(),
        documents: BTreeMap::new(),
        replays: vec![],
        parameters: vec![
            parameter("model.layers.0.w", Dtype::BF16),
            parameter("model.layers.1.w", Dtype::BF16),
        ],
    };
    change(&mut manifest);
    writer.finish(&manifest).unwrap();
}

/// `mlxcel-bundle` in this folder, which is its store too, in `.store`.
pub fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mlxcel-bundle"));
    program.args(arguments).current_dir(folder).env("MLXCEL_STORE", folder.join(".store"));
    program
}

/// How it ended, and what it said.
pub fn shown(folder: &Path, arguments: &[&str]) -> String {
    text(program(folder, arguments).output().unwrap())
}

/// The same of a program that has run.
pub fn text(output: Output) -> String {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    format!("exit {}\n{}{}", output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
