//! Granite 3 MoE: Granite with experts, whose weights are stacked in two tensors.
//!
//! Keys and tensors of transformers' `GraniteMoeConfig` and `GraniteMoeForCausalLM`.

use super::{
    experts,
    experts::expert_of_stack,
    granite::Multipliers,
    rope::ROPE,
    standard::{LLAMA, Standard, layer_name, linear, split_fused},
};
use crate::{block::Attention, config::ModelConfig, error::Error, json::Json};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, LLAMA)?;
    let rope = model.rope(&ROPE)?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let count = experts::count(&model, 8, 2)?;
    let multipliers = Multipliers::read(json)?;
    let (hidden, width) = (model.hidden, model.intermediate);
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        let attention = Attention { scale: multipliers.attention, ..attention };
        let name_of = |part: &str| format!("{name}.block_sparse_moe.{part}");
        let inputs = linear(name_of("input_linear"), [2 * width, hidden], false);
        let outputs = linear(name_of("output_linear"), [hidden, width], false);
        let experts = experts::mixture(
            linear(name_of("router.layer"), [count.experts, hidden], false),
            &count,
            |expert| {
                let [gate, up] = split_fused(&expert_of_stack(&inputs, count.experts, expert), 1, [width; 2]);
                model.gated_mlp(gate, up, expert_of_stack(&outputs, count.experts, expert))
            },
        );
        let mut block = model.block(&name, attention, experts);
        multipliers.scale(&mut block);
        block
    };
    let blocks = (0..model.layers).map(block).collect();
    Ok(multipliers.finish(model.build(blocks)?))
}
