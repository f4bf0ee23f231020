//! What a step on a GPU is made of, in models of every family. A step of kernels alone allocates nothing and is replayed as one
//! graph; other ops are generated code, whose results are allocated in every call.

use mlxcel_artifacts::{Float, Quant};
use mlxcel_models::{Preset, Storage};
use safetensors::Dtype;

use super::{build, parameters, step_bytes::step_bytes};
use crate::{
    graph::Function,
    kernels::Isa,
    module::Module,
    plan::{Numerics, Plan},
    scratch::is_generated,
};

/// A model of each family, with the options that families have.
const PRESETS: [&str; 24] = [
    "aya-expanse-8b",
    "command-r7b",
    "ernie-4.5-0.3b",
    "exaone-4.0-1.2b",
    "gemma-2-2b",
    "gemma-2b",
    "gemma-3-1b",
    "glm-4-9b-0414",
    "gpt-oss-20b",
    "gpt2",
    "granite-3.1-1b-a400m",
    "granite-3.3-2b",
    "llama-3.2-1b",
    "mixtral-8x7b",
    "olmo-2-1b",
    "olmo-3-7b",
    "phi-3-mini-4k",
    "pythia-1b",
    "qwen1.5-moe-a2.7b",
    "qwen2.5-0.5b",
    "qwen3-0.6b",
    "qwen3-30b-a3b",
    "stablelm-2-1.6b",
    "starcoder2-3b",
];

/// Returns the kernels and the other ops of a function.
fn counts(function: &Function) -> String {
    let ops = &function.body.ops;
    let kernels = ops.iter().filter(|op| op.kernel.is_some()).count();
    let generated = ops.iter().filter(|op| is_generated(op)).count();
    format!("{kernels:>3} + {generated:<3}")
}

/// Returns the module of a model's first two layers, with the bytes of weights that its steps read.
fn small(name: &str, quant: Quant) -> (Module, u64) {
    let mut model = Preset::find(name).unwrap().model().unwrap();
    model.blocks.truncate(2);
    let plan = Plan { quant, ..Plan::new(&model, Float::Bf16, 2048) };
    let plan = plan.for_target(Numerics { gpu: Some(Isa::Sm90), ..Numerics::default() });
    let stored = Storage::all(Dtype::BF16);
    let (module, packing) = build(&model, &plan, &stored).unwrap();
    let packed = packing.has_functions().then(|| packing.finish().unwrap());
    let bytes = step_bytes(&model, &parameters(&model, &stored), packed.as_ref());
    (module, bytes)
}

/// Other kernels of one row than those of products read little. Generated code reads the rest of the weights, if there is some.
#[test]
fn kernels_of_a_step_move_its_weights_and_little_else() {
    let mut whole = 0;
    let mut all = PRESETS.map(|name| (name, Quant::None)).to_vec();
    all.extend(
        ["llama-3.2-1b", "qwen3-30b-a3b"].into_iter().flat_map(|name| [(name, Quant::Q8), (name, Quant::Q4)]),
    );
    for (name, quant) in all {
        let (module, weights) = small(name, quant);
        let step = module.functions().iter().find(|function| function.name == "step_1").unwrap();
        let calls = module.gpu_calls(step);
        let moved: u64 = calls.values().map(|calls| calls.cost.traffic.bytes).sum();
        let share = moved as f64 / weights as f64;
        let is_whole = !step.body.ops.iter().any(is_generated);
        whole += usize::from(is_whole);
        let least = if is_whole { 1.0 } else { 0.0 };
        assert!((least..1.05).contains(&share), "{name} in {quant}: {moved} of {weights}: {calls:#?}");
    }
    assert!(whole >= PRESETS.len(), "kernels compute the whole step of {whole} models");
}

#[test]
fn steps_are_made_of_kernels() {
    let mut table = "kernels and other ops of two layers, for 1, 8 and 512 rows\n".to_owned();
    for name in PRESETS {
        let (module, _) = small(name, Quant::None);
        let of = |step: &str| {
            let found = module.functions().iter().find(|function| function.name == step);
            found.map_or_else(String::new, counts)
        };
        let [one, eight, prompt] = ["step_1", "step_8", "step_512"].map(of);
        table += format!("{name:<22}{one} {eight} {prompt}").trim_end();
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}
