//! `mlxcel-bundle diff` and `size`.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod common;

use mlxcel_artifacts::{Compiler, Digest, IREE_VERSION, Manifest, SelfTestCase, sample};

use crate::common::{run, write};

/// Compares a bundle with a changed copy of it.
fn differences(change: impl FnOnce(&mut Manifest)) -> String {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 1000], |_| ());
    write(&folder.path().join("b"), &[1; 1000], change);
    run(folder.path(), &["diff", "a", "b"])
}

#[test]
fn equal_bundles_have_no_differences() {
    assert_eq!(differences(|_| ()), "exit 0\n");
}

#[test]
fn flags_compilers_entries_and_sizes() {
    let found = differences(|manifest| {
        manifest.compiler = Compiler { version: IREE_VERSION.into(), digest: Digest::of(b"other") };
        manifest.plan.as_mut().unwrap().context = 256;
        let cpu = manifest.targets.get_mut("cpu").unwrap();
        cpu.flags.push("--iree-llvmcpu-debug".into());
        cpu.cpu_features.reverse();
        let roles = [sample::step(1, 1), sample::step(64, 2)];
        cpu.entries = roles.map(|role| sample::entry(role, 256, 100)).to_vec();
        cpu.serving.as_mut().unwrap().exact = false;
        cpu.step_bytes = 64;
    });
    insta::assert_snapshot!(found, @r"
    exit 1
    context                  512 → 256
    compiler                 different builds: d1c2da04f74e → 3f796163ebf9
    target cpu cpu features  different order
    target cpu flags         only in the second: --iree-llvmcpu-debug
    target cpu entry         only in the first: step_4
    target cpu entry         only in the second: step_64
    target cpu entry step_1  (tokens i32[1], positions i32[1], begins i32[2], starts i32[1], rows i32[1], pages of pool 0 i32[1,8], selected i32[1], selected_count i32[1], cache 0.0 f32[0,2,2,64,8]) -> (next_token i32[1], logits f32[1,100], cache 0.0 f32[0,2,2,64,8]) → (tokens i32[1], positions i32[1], begins i32[2], starts i32[1], rows i32[1], pages of pool 0 i32[1,4], selected i32[1], selected_count i32[1], cache 0.0 f32[0,2,2,64,8]) -> (next_token i32[1], logits f32[1,100], cache 0.0 f32[0,2,2,64,8])
    target cpu serving       up to 2 sequences in a call, exact, 8.0 KiB (8192 bytes) for 64 positions → up to 2 sequences in a call, not exact: an answer may depend on the others, 8.0 KiB (8192 bytes) for 64 positions
    target cpu step reads    32 bytes → 64 bytes
    ");
}

#[test]
fn signatures_and_self_tests() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    let case = SelfTestCase { prompt: vec![1], tokens: vec![2], gaps: vec![0.5], embedding: vec![] };
    write(&folder.path().join("a"), &[1; 10], |_| ());
    write(&folder.path().join("b"), &[1; 10], |manifest| manifest.replays = vec![case]);
    run(&["keygen", "--no-password"]);
    let signed = run(&["sign", "b", "--no-password", "--comment", "release"]);
    let key = signed.split_whitespace().rev().nth(1).unwrap().trim_end_matches(':');
    assert_eq!(
        run(&["diff", "a", "b"]),
        format!("exit 1\nself-test  only in the second\nsignature  none → by key {key}: release\n")
    );
}

#[test]
fn weights() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 1000], |_| ());
    write(&folder.path().join("b"), &[2; 1500], |manifest| {
        manifest.parameters[1].shape = vec![50, 50];
        let other = manifest.targets["cpu"].clone();
        manifest.targets.insert("cpu-2".into(), other);
    });
    insta::assert_snapshot!(run(folder.path(), &["diff", "a", "b"]), @r"
    exit 1
    parameters                  different types: model.layers.1.w bf16[25,100] → bf16[50,50]
    parameters                  different content: model.layers.0.w
    target                      only in the second: cpu-2
    target cpu packing weights  different content: 92d52878182c → a4630a946ca2, 1000 bytes → 1.5 KiB (1500 bytes)
    weights model.safetensors   different content: 92d52878182c → a4630a946ca2, 1000 bytes → 1.5 KiB (1500 bytes)
    ");
}

#[test]
fn sizes_of_files_and_tensors() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 100_000], |_| ());
    let text = run(folder.path(), &["size", "a"]);
    // Leaves out the manifest's size, which changes with every new field, and the shares.
    let lines = text.lines().filter(|line| !line.contains("manifest") && !line.starts_with("total"));
    let lines: Vec<_> = lines.map(|line| line.split(" % ").last().unwrap_or(line).trim_start()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    exit 0
    97.7 KiB  packed weights of target cpu
    4.9 KiB  vmfb of target cpu
    700 bytes  packing vmfb of target cpu
    2 bytes  file config.json

    97.7 KiB (100000 bytes) are listed twice and stored once

    the checkpoint's tensors, 9.8 KiB (10000 bytes)
    9.8 KiB  model.layers.*.w
    ");
}

#[test]
fn a_missing_bundle_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &[1; 10], |_| ());
    let refused = run(folder.path(), &["diff", "a", "b"]);
    assert!(refused.starts_with("exit 2\nerror: b is not a bundle: it does not exist\n"), "{refused}");
}
