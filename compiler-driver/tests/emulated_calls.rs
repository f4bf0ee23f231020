//! What a step on a GPU asks of the driver, which the emulated one writes down.

use std::{fs, process::Output};

use crate::{
    emulated::{for_gpu, on_emulator},
    real::{self, Fixture, program},
};

/// Layers of the fixture.
const LAYERS: usize = 2;

/// Kernels of a decode step: five of each layer, and numbers, embedding, rotation, head and argmax. So 85 in a model of 16 layers.
const LAUNCHES: usize = 5 * LAYERS + 5;

/// Returns the calls of the driver after the weights are there, from the first kernel on, for a prompt and `count` tokens.
fn calls(target: &str, prompt: &str, count: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.txt");
    let built = real::built(&for_gpu(&Fixture::find("gqa"), target));
    let mut command = on_emulator(program("mlxcel-run"));
    command.arg(built.bundle.path()).args(["--device", "cuda", "--ignore-eos"]);
    command.args(["--tokens", prompt, "-n", count]).env("MLXCEL_EMULATOR_COUNTS", &file);
    let Output { status, stderr, .. } = command.output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(ToOwned::to_owned).skip_while(|line| !is_start(line)).collect()
}

/// Returns whether a call begins a step.
fn is_start(line: &str) -> bool {
    line == "cuLaunchKernel cuda_stage" || line == "cuGraphLaunch"
}

/// Divides calls into steps.
fn steps(calls: &[String]) -> Vec<&[String]> {
    calls.chunk_by(|_, next| !is_start(next)).collect()
}

/// Returns how many lines of a step begin so.
fn count(step: &[String], of: &str) -> usize {
    step.iter().filter(|line| line.starts_with(of)).count()
}

#[test]
fn a_decode_step_is_one_launch_and_one_wait() {
    let calls = calls("cuda", "63", "6");
    let steps = steps(&calls);
    assert_eq!(steps.len(), 6, "{calls:?}");
    // The first two steps prepare what is replayed.
    for step in &steps[..2] {
        assert_eq!(count(step, "cuLaunchKernel "), LAUNCHES, "{step:?}");
        let others: Vec<_> = step.iter().filter(|line| !line.starts_with("cuLaunchKernel ")).collect();
        assert_eq!(others, ["cuEventSynchronize"], "{step:?}");
    }
    for step in &steps[2..] {
        assert_eq!(count(step, "kernel "), LAUNCHES, "{step:?}");
        let others: Vec<_> = step.iter().filter(|line| !line.starts_with("kernel ")).collect();
        assert_eq!(others, ["cuGraphLaunch", "cuStreamSynchronize"], "{step:?}");
    }
}

#[test]
fn a_prompt_has_no_wait_but_the_last() {
    let prompt: Vec<_> = (1..=20).map(|token| token.to_string()).collect();
    let calls = calls("cuda", &prompt.join(","), "2");
    let steps = steps(&calls);
    let waits = steps[0].iter().filter(|line| line.contains("Synchronize")).count();
    let kernels = count(steps[0], "cuLaunchKernel ");
    // What waits for the step's end gives its memory back.
    assert_eq!((waits, kernels > LAUNCHES), (1, true), "{:?}", steps[0]);
}

/// The emulator fails if a kernel that begins early reads or writes anything too early.
#[test]
fn from_sm_90_on_kernels_of_a_step_begin_before_those_ahead_have_ended() {
    let calls = calls("cuda-sm_90", "63", "4");
    let steps = steps(&calls);
    assert_eq!(steps.len(), 4, "{calls:?}");
    for step in &steps[2..] {
        let found = ["cuGraphLaunch", "kernel cuda_", "early kernel cuda_"].map(|of| count(step, of));
        assert_eq!(found, [1, 1, LAUNCHES - 1], "{step:?}");
    }
}
