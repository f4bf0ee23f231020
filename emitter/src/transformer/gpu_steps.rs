//! What a step on a GPU is made of, in models of every family. A step of kernels alone allocates nothing and is replayed as one
//! graph; other ops are generated code, whose results are allocated in every call.

use mlxcel_artifacts::Float;
use mlxcel_models::{Preset, Storage};
use safetensors::Dtype;

use super::build;
use crate::{
    graph::Function,
    kernels::Isa,
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

#[test]
fn steps_are_made_of_kernels() {
    let mut table = "kernels and other ops of two layers, for 1, 8 and 512 rows\n".to_owned();
    for name in PRESETS {
        let mut model = Preset::find(name).unwrap().model().unwrap();
        model.blocks.truncate(2);
        let plan = Plan::new(&model, Float::Bf16, 2048);
        let plan = plan.for_target(Numerics { gpu: Some(Isa::Sm90), ..Numerics::default() });
        let (module, _) = build(&model, &plan, &Storage::all(Dtype::BF16)).unwrap();
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
