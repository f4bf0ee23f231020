//! `mlxcel-bundle diff` and `size`.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

use std::{collections::BTreeMap, path::Path, process::Command};

use mlxcel_artifacts::{
    BundleWriter, Compiler, Digest, Driver, FORMAT, IREE_VERSION, Manifest, Packing, Plan, TargetArtifact,
    signature::{Entry, PackStep, Parameter, Role},
};
use safetensors::Dtype;

/// Writes a bundle with these weights, changed as asked.
fn write(out: &Path, weights: &[u8], change: impl FnOnce(&mut Manifest)) {
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
        replays: vec![],
        parameters: vec![
            parameter("model.layers.0.w", Dtype::BF16),
            parameter("model.layers.1.w", Dtype::BF16),
        ],
    };
    change(&mut manifest);
    writer.finish(&manifest).unwrap();
}

fn shown(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mlxcel-bundle"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    format!("exit {}\n{}{}", output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// What `diff` says of a bundle and the same changed.
fn differences(change: impl FnOnce(&mut Manifest)) -> String {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 1000], |_| ());
    write(&folder.path().join("b"), &[1; 1000], change);
    shown(folder.path(), &["diff", "a", "b"])
}

#[test]
fn the_same_bundle_in_two_folders() {
    assert_eq!(differences(|_| ()), "exit 0\n");
}

#[test]
fn a_flag_the_compiler_an_entry_and_sizes() {
    let found = differences(|manifest| {
        manifest.compiler = Compiler { version: IREE_VERSION.into(), digest: Digest::of(b"other") };
        manifest.plan.context = 256;
        let cpu = manifest.targets.get_mut("cpu").unwrap();
        cpu.flags.push("--iree-llvmcpu-debug".into());
        cpu.cpu_features.reverse();
        cpu.entries.remove(0);
        cpu.entries.push(Entry::new(Role::Prefill { tokens: 64 }, 1, 100));
        cpu.step_bytes = 64;
    });
    insta::assert_snapshot!(found, @r"
    exit 1
    context                  512, 256
    compiler                 another build of it: d1c2da04f74e, 3f796163ebf9
    target cpu cpu features  in another order
    target cpu flags         only in the second: --iree-llvmcpu-debug
    target cpu entry         only in the first: prefill_32
    target cpu entry         only in the second: prefill_64
    target cpu step          reads 32 bytes, reads 64 bytes
    ");
}

#[test]
fn other_weights() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 1000], |_| ());
    write(&folder.path().join("b"), &[2; 1500], |manifest| {
        manifest.parameters[1].shape = vec![50, 50];
        let other = manifest.targets["cpu"].clone();
        manifest.targets.insert("cpu-2".into(), other);
    });
    insta::assert_snapshot!(shown(folder.path(), &["diff", "a", "b"]), @r"
    exit 1
    parameters                  other types: model.layers.1.w: bf16[25,100], bf16[50,50]
    parameters                  other bytes: model.layers.0.w
    target                      only in the second: cpu-2
    target cpu packing weights  other bytes, 1000 bytes, 1.5 KiB (1500 bytes): 92d52878182c, a4630a946ca2
    weights model.safetensors   other bytes, 1000 bytes, 1.5 KiB (1500 bytes): 92d52878182c, a4630a946ca2
    ");
}

#[test]
fn where_the_bytes_are() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 100_000], |_| ());
    let text = shown(folder.path(), &["size", "a"]);
    // The manifest's own size is another with every field, and so are the shares.
    let lines = text.lines().filter(|line| !line.contains("manifest") && !line.starts_with("in all"));
    let lines: Vec<_> = lines.map(|line| line.split(" % ").last().unwrap_or(line).trim_start()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    exit 0
    97.7 KiB  packed weights of target cpu
    4.9 KiB  vmfb of target cpu
    700 bytes  packing vmfb of target cpu
    2 bytes  file config.json

    97.7 KiB (100000 bytes) are named twice and lie there once

    the checkpoint's tensors, 9.8 KiB (10000 bytes)
    9.8 KiB  model.layers.*.w
    ");
}

#[test]
fn what_cannot_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 10], |_| ());
    let refused = shown(folder.path(), &["diff", "a", "b"]);
    assert!(refused.starts_with("exit 2\nerror: b is not a bundle: nothing is there\n"), "{refused}");
}
