//! What a step on a GPU asks of the driver, which the emulated one writes down.

use std::{fs, process::Output};

use mlxcel_compiler_driver::{Float, Precision, Request};
use serde_json::Value;

use crate::{
    emulated::{for_gpu, on_emulator},
    real::{self, Fixture, program},
};

/// Layers of the fixtures.
const LAYERS: usize = 2;

/// Kernels of a decode step: five of each layer, and numbers, embedding, rotation, head and argmax. So 85 in a model of 16 layers.
const LAUNCHES: usize = 5 * LAYERS + 5;

/// The same of a mixture, whose router is one more in each layer.
const MIXTURE_LAUNCHES: usize = LAUNCHES + LAYERS;

/// Kernels of a prompt: two sums with norms, three products, appending and attention of each layer, and its gated product; besides
/// those of a step, the sum of the last layer, and the rows that the head gets.
const PROMPT_LAUNCHES: usize = 8 * LAYERS + 8;

/// Returns the calls of the driver after the weights are there, from the first kernel on, for a prompt and `count` tokens.
fn calls(fixture: &str, target: &str, prompt: &str, count: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.txt");
    let built = real::built(&for_gpu(&Fixture::find(fixture), target));
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
    for (fixture, launches) in [("gqa", LAUNCHES), ("mixtral-hub", MIXTURE_LAUNCHES)] {
        let calls = calls(fixture, "cuda", "63", "6");
        let steps = steps(&calls);
        assert_eq!(steps.len(), 6, "{calls:?}");
        // The first two steps prepare what is replayed.
        for step in &steps[..2] {
            assert_eq!(count(step, "cuLaunchKernel "), launches, "{step:?}");
            let others: Vec<_> = step.iter().filter(|line| !line.starts_with("cuLaunchKernel ")).collect();
            assert_eq!(others, ["cuEventSynchronize"], "{step:?}");
        }
        for step in &steps[2..] {
            assert_eq!(count(step, "kernel "), launches, "{step:?}");
            let others: Vec<_> = step.iter().filter(|line| !line.starts_with("kernel ")).collect();
            assert_eq!(others, ["cuGraphLaunch", "cuStreamSynchronize"], "{step:?}");
        }
    }
}

#[test]
fn a_prompt_has_no_wait_but_the_last() {
    let prompt: Vec<_> = (1..=20).map(|token| token.to_string()).collect();
    let calls = calls("gqa", "cuda", &prompt.join(","), "2");
    let steps = steps(&calls);
    let waits = steps[0].iter().filter(|line| line.contains("Synchronize")).count();
    let kernels = count(steps[0], "cuLaunchKernel ");
    // What waits for the step's end gives its memory back.
    assert_eq!((waits, kernels > LAUNCHES), (1, true), "{:?}", steps[0]);
}

/// Its sizes are those that all kernels are for, in the type that products multiply.
#[test]
fn prompts_of_a_size_are_one_launch_from_the_third_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.txt");
    let request = for_gpu(&Fixture::find("narrow-heads"), "cuda");
    let built = real::built(&Request { precision: Precision::Float(Float::Bf16), ..request });
    let mut command = on_emulator(program("mlxcel-bench"));
    command.arg(built.bundle.path()).args(["--device", "cuda", "-p", "20", "-n", "0", "-r", "3"]);
    let Output { status, stderr, .. } = command.env("MLXCEL_EMULATOR_COUNTS", &file).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let text = fs::read_to_string(file).unwrap();
    let calls: Vec<_> = text.lines().map(ToOwned::to_owned).skip_while(|line| !is_start(line)).collect();
    let steps = steps(&calls);
    let launches: Vec<_> = steps.iter().map(|step| count(step, "cuGraphLaunch")).collect();
    assert_eq!(launches, [0, 0, 1, 1], "{calls:?}");
    assert_eq!(count(steps[3], "kernel cuda_"), PROMPT_LAUNCHES, "{:?}", steps[3]);
    assert_eq!(count(steps[3], "cuMem"), 0, "{:?}", steps[3]);
}

#[test]
fn a_profile_has_all_kernels_of_the_steps() {
    const STEPS: usize = 3;
    let built = real::built(&for_gpu(&Fixture::find("gqa"), "cuda"));
    let mut command = on_emulator(program("mlxcel-bench"));
    command.arg(built.bundle.path()).args(["--device", "cuda", "--profile", "-o", "json"]);
    command.args(["-p", "0", "-r", "1", "-n", &STEPS.to_string()]);
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let json: Value = serde_json::from_slice(&stdout).unwrap();
    let profile = &json[0];
    let dispatches = profile["dispatches"].as_array().unwrap();
    let calls = |found: &&Value| found["calls"].as_u64().unwrap();
    assert_eq!(
        dispatches.iter().map(|found| calls(&found)).sum::<u64>(),
        (STEPS * LAUNCHES) as u64,
        "{json:#}"
    );
    let of = |name: &str| dispatches.iter().find(|found| found["name"] == name).as_ref().map(calls);
    assert_eq!(of("cuda_norm_gated_f32"), Some((STEPS * LAYERS) as u64), "{json:#}");
    assert_eq!(of("cuda_argmax"), Some(STEPS as u64), "{json:#}");
    // One after the other, within the whole.
    let times: Vec<_> = dispatches.iter().map(|found| found["time_ms"].as_f64().unwrap()).collect();
    assert!(times.iter().all(|&ms| ms > 0.0), "{json:#}");
    assert!(times.iter().sum::<f64>() <= profile["total_ms"].as_f64().unwrap(), "{json:#}");
}

/// The emulator fails if a kernel that begins early reads or writes anything too early.
#[test]
fn from_sm_90_on_kernels_of_a_step_begin_before_those_ahead_have_ended() {
    let calls = calls("gqa", "cuda-sm_90", "63", "4");
    let steps = steps(&calls);
    assert_eq!(steps.len(), 4, "{calls:?}");
    for step in &steps[2..] {
        let found = ["cuGraphLaunch", "kernel cuda_", "early kernel cuda_"].map(|of| count(step, of));
        assert_eq!(found, [1, 1, LAUNCHES - 1], "{step:?}");
    }
}
