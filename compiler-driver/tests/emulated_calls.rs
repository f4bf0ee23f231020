//! What a step on a GPU asks of the driver, which the emulated one writes down.

use std::{fs, path::Path, process::Output};

use mlxcel_compiler_driver::{Float, ModelSource, Precision, Request, WeightSource};
use serde_json::{Value, json};

use crate::{
    emulated::{for_gpu, on_emulator},
    real::{self, Fixture, program},
};

/// Layers of the fixtures.
const LAYERS: usize = 2;

/// Kernels of a decode step: five of each layer, and numbers, embedding, rotation, head and argmax. So 85 in a model of 16 layers.
pub(crate) const LAUNCHES: usize = 5 * LAYERS + 5;

/// The same of a mixture, whose router is one more in each layer.
const MIXTURE_LAUNCHES: usize = LAUNCHES + LAYERS;

/// Kernels of a prompt: two sums with norms, three products, appending and attention of each layer, and its gated product; besides
/// those of a step, the sum of the last layer, and the rows that the head gets.
const PROMPT_LAUNCHES: usize = 8 * LAYERS + 8;

/// Decode steps that prepare what is replayed: the first two of each of the two calls that take turns.
const PREPARING: usize = 4;

/// Returns the calls of the driver after the weights are there, from the first kernel on, for a prompt and `count` tokens.
fn calls(fixture: &str, target: &str, prompt: &str, count: &str) -> Vec<String> {
    calls_of(&for_gpu(&Fixture::find(fixture), target), prompt, count)
}

/// Returns the same of a request.
fn calls_of(request: &Request, prompt: &str, count: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.txt");
    let built = real::built(request);
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

/// Divides calls into steps. Those with several pools of pages begin with as many equal lines.
fn steps(calls: &[String]) -> Vec<&[String]> {
    calls.chunk_by(|before, next| !is_start(next) || before == next).collect()
}

/// Returns how many lines of a step begin so.
fn count(step: &[String], of: &str) -> usize {
    step.iter().filter(|line| line.starts_with(of)).count()
}

#[test]
fn a_decode_step_is_one_launch_and_one_wait() {
    for (fixture, launches) in [("gqa", LAUNCHES), ("mixtral-hub", MIXTURE_LAUNCHES)] {
        let calls = calls(fixture, "cuda", "63", "8");
        let steps = steps(&calls);
        assert_eq!(steps.len(), 8, "{calls:?}");
        for step in &steps[..PREPARING] {
            assert_eq!(count(step, "cuLaunchKernel "), launches, "{step:?}");
            let others: Vec<_> = step.iter().filter(|line| !line.starts_with("cuLaunchKernel ")).collect();
            assert_eq!(others, ["cuEventSynchronize"], "{step:?}");
        }
        for step in &steps[PREPARING..] {
            assert_eq!(count(step, "kernel "), launches, "{step:?}");
        }
        check_replays(&steps[PREPARING..]);
    }
}

/// Checks that each of these steps is launched once, and waited for after the launch of the next one.
fn check_replays(steps: &[&[String]]) {
    let others = steps.iter().flat_map(|step| step.iter()).filter(|line| !line.contains("kernel "));
    let mut expected = vec!["cuGraphLaunch"];
    expected.extend(["cuGraphLaunch", "cuEventSynchronize"].repeat(steps.len() - 1));
    expected.push("cuEventSynchronize");
    assert_eq!(others.collect::<Vec<_>>(), expected, "{steps:?}");
}

#[test]
fn a_prompt_has_no_wait_but_the_last() {
    for (tokens, chunk) in [(20, 32), (511, 512)] {
        let prompt: Vec<_> = (0..tokens).map(|token| (token % 130 + 1).to_string()).collect();
        let request = Request { chunk: Some(chunk), ..for_gpu(&Fixture::find("gqa"), "cuda") };
        let calls = calls_of(&request, &prompt.join(","), "2");
        let steps = steps(&calls);
        let waits = steps[0].iter().filter(|line| line.contains("Synchronize")).count();
        let kernels = count(steps[0], "cuLaunchKernel ");
        // What waits for the step's end gives its memory back.
        assert_eq!((waits, kernels > LAUNCHES), (1, true), "{tokens} tokens: {:?}", steps[0]);
    }
}

/// Returns a request in bf16 for a fixture of two layers with sizes that all kernels are for, and random weights.
fn with_whole_sizes(fixture: &str, target: &str, folder: &Path) -> Request {
    const SIZES: [(&str, usize); 6] = [
        ("hidden_size", 64),
        ("intermediate_size", 96),
        ("moe_intermediate_size", 32),
        ("shared_expert_intermediate_size", 32),
        ("num_hidden_layers", 2),
        ("head_dim", 16),
    ];
    let fixture = Fixture::find(fixture);
    let text = fs::read_to_string(fixture.folder.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    for (key, size) in SIZES {
        if let Some(found) = config.get_mut(key) {
            *found = json!(size);
        }
    }
    if let Some(Value::Array(types)) = config.get_mut("layer_types") {
        types.truncate(2);
    }
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    Request {
        model: ModelSource::Folder(folder.into()),
        weights: WeightSource::Random(1),
        precision: Precision::Float(Float::Bf16),
        ..for_gpu(&fixture, target)
    }
}

/// Those of other families have norms after layers, scaled and capped logits, and gates of shared experts.
#[test]
fn decode_steps_of_other_families_are_one_launch_too() {
    for fixture in ["gemma3-hub", "gemma2-hub", "qwen2-moe-hub"] {
        let folder = tempfile::tempdir().unwrap();
        let calls = calls_of(&with_whole_sizes(fixture, "cuda-sm_90", folder.path()), "63", "6");
        let steps = steps(&calls);
        assert_eq!(steps.len(), 6, "{fixture}: {calls:?}");
        let is_ours = |line: &String| !line.contains("kernel ") || line.contains("kernel cuda_");
        assert!(steps[PREPARING..].iter().all(|step| step.iter().all(is_ours)), "{fixture}: {steps:?}");
        check_replays(&steps[PREPARING..]);
    }
}

/// Returns the calls of three prompts of 20 tokens.
fn calls_of_prompts(request: &Request) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.txt");
    let built = real::built(request);
    let mut command = on_emulator(program("mlxcel-bench"));
    command.arg(built.bundle.path()).args(["--device", "cuda", "-p", "20", "-n", "0", "-r", "3"]);
    let Output { status, stderr, .. } = command.env("MLXCEL_EMULATOR_COUNTS", &file).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(ToOwned::to_owned).skip_while(|line| !is_start(line)).collect()
}

/// The last block adds its attention last, so that the rows for the head are gathered from what the kernel right before
/// writes. The emulator fails if they are read too early.
#[test]
fn rows_for_the_head_wait_for_the_kernel_that_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    let calls = calls_of_prompts(&with_whole_sizes("cohere-bare", "cuda-sm_90", folder.path()));
    let steps = steps(&calls);
    assert_eq!(count(steps[3], "cuGraphLaunch"), 1, "{:?}", steps[3]);
    let kernels: Vec<_> = steps[3].iter().filter(|line| line.contains("kernel cuda_")).collect();
    let gather = kernels.iter().position(|line| *line == "kernel cuda_gather").unwrap();
    assert!(kernels[gather - 1].ends_with("cuda_norm_rows"), "{kernels:?}");
}

/// Its sizes are those that all kernels are for, in the type that products multiply.
#[test]
fn prompts_of_a_size_are_one_launch_from_the_third_on() {
    let request = for_gpu(&Fixture::find("narrow-heads"), "cuda");
    let calls = calls_of_prompts(&Request { precision: Precision::Float(Float::Bf16), ..request });
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
    check_traffic(dispatches, STEPS as u64);
    // One after the other, within the whole.
    let times: Vec<_> = dispatches.iter().map(|found| found["time_ms"].as_f64().unwrap()).collect();
    assert!(times.iter().all(|&ms| ms > 0.0), "{json:#}");
    assert!(times.iter().sum::<f64>() <= profile["total_ms"].as_f64().unwrap(), "{json:#}");
}

/// Checks the bytes of kernels in steps of `gqa` from an empty cache.
fn check_traffic(dispatches: &[Value], steps: u64) {
    // Of the fixture: its weights are `f32`.
    let [hidden, intermediate, heads, kv_heads, head_dim] = [32, 80, 8, 2, 8_u64];
    let of = |name: &str| {
        let found = dispatches.iter().find(|found| found["name"] == name).unwrap();
        let bytes = found["bytes"].as_f64().unwrap();
        let time = found["time_ms"].as_f64().unwrap() / 1e3;
        assert!((found["bytes_s"].as_f64().unwrap() - bytes / time).abs() < 1.0, "{found}");
        bytes
    };
    let gated = 4 * (2 * hidden * intermediate + 2 * hidden + intermediate);
    assert_eq!(of("cuda_norm_gated_f32"), (steps * LAYERS as u64 * gated) as f64);
    // Each product adds to the residual stream.
    let added = |inputs: u64| 4 * (inputs * hidden + inputs + 2 * hidden);
    let outer = added(heads * head_dim) + added(intermediate);
    assert_eq!(of("cuda_matvec_add_f32"), (steps * LAYERS as u64 * outer) as f64);
    // Keys and values of all positions before, on average one in each step.
    let position = 2 * 4 * kv_heads * head_dim;
    let attention = of("cuda_decode_attention_f32_64");
    let least = steps * LAYERS as u64 * position;
    assert!(attention > least as f64 && attention < 20.0 * least as f64, "{attention}");
    let unknown: Vec<_> = dispatches.iter().filter(|found| found["bytes"].is_null()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The emulator fails if a kernel that begins early reads or writes anything too early.
#[test]
fn from_sm_90_on_kernels_of_a_step_begin_before_those_ahead_have_ended() {
    let calls = calls("gqa", "cuda-sm_90", "63", "6");
    let steps = steps(&calls);
    assert_eq!(steps.len(), 6, "{calls:?}");
    for step in &steps[PREPARING..] {
        let found = ["cuGraphLaunch", "kernel cuda_", "early kernel cuda_"].map(|of| count(step, of));
        assert_eq!(found, [1, 1, LAUNCHES - 1], "{step:?}");
    }
}
