//! A small bundle, and `mlxcel-bundle`.

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
    BundleWriter, Digest, Driver, Manifest, Packing, TargetArtifact,
    entry::{PackStep, Parameter},
    sample,
};
use safetensors::Dtype;

/// Writes a bundle with these weights, and with a manifest that `change` has changed.
pub fn write(out: &Path, weights: &[u8], change: impl FnOnce(&mut Manifest)) {
    let mut writer = BundleWriter::create(out).unwrap();
    let parameter = |name: &str, dtype| Parameter {
        source: Some(Digest::of(weights)),
        ..Parameter::new(name, dtype, &[25, 100])
    };
    let results = vec![parameter("model.layers.0.w.panels", Dtype::F32)];
    let step = PackStep::whole("panels_0", vec!["model.layers.0.w".into()], results);
    let packing = Packing {
        build_key: Digest::of(b"packing"),
        vmfb: writer.add_bytes(&[5; 700]).unwrap(),
        weights: Some(writer.add_bytes(weights).unwrap()),
        made_from: BTreeMap::new(),
        calibrated_by: None,
        calibration: None,
        steps: vec![step],
    };
    let vmfb = writer.add_bytes(&[4; 5_000]).unwrap();
    let cpu = TargetArtifact {
        cpu_features: vec!["avx2".into(), "fma".into()],
        flags: vec!["--iree-opt-level=O3".into()],
        packing: Some(packing),
        ..sample::target(Driver::Local, "x86_64", vmfb, 512, 100)
    };
    let mut manifest = Manifest {
        targets: [("cpu".to_string(), cpu)].into(),
        files: [("config.json".to_string(), writer.add_bytes(b"{}").unwrap())].into(),
        weights: [("model.safetensors".to_string(), writer.add_bytes(weights).unwrap())].into(),
        parameters: vec![
            parameter("model.layers.0.w", Dtype::BF16),
            parameter("model.layers.1.w", Dtype::BF16),
        ],
        ..sample::manifest(512, 100)
    };
    change(&mut manifest);
    writer.finish(&manifest).unwrap();
}

/// Returns a command that runs `mlxcel-bundle` in this folder, with the store in `.store`.
pub fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mlxcel-bundle"));
    program.args(arguments).current_dir(folder).env("MLXCEL_STORE", folder.join(".store"));
    program
}

/// Runs `mlxcel-bundle` and returns its transcript.
pub fn run(folder: &Path, arguments: &[&str]) -> String {
    transcript(program(folder, arguments).output().unwrap())
}

/// Returns the exit status, stdout and stderr as one text.
pub fn transcript(output: Output) -> String {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    format!("exit {}\n{}{}", output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
