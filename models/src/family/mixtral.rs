//! Mixtral: Mistral with eight experts, two per token.
//!
//! Keys and tensors of transformers' `MixtralConfig` and `MixtralForCausalLM`.

use super::{
    experts, rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{aliases::Aliases, block::Attention, config::ModelConfig, error::Error, json::Json};

/// Name endings of experts' layers, and those that llmcompressor writes.
const ENDINGS: [(&str, &str); 3] = [
    (".w1.weight", ".gate_proj.weight"),
    (".w2.weight", ".down_proj.weight"),
    (".w3.weight", ".up_proj.weight"),
];

const MIXTRAL: Defaults = Defaults {
    intermediate: 14_336,
    kv_heads: Some(8),
    max_positions: ("max_position_embeddings", 131_072),
    epsilon: ("rms_norm_eps", 1e-5),
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, MIXTRAL)?;
    let rope = model.rope(&rope::Defaults { theta: 1_000_000.0, ..ROPE })?;
    let window = model.window(None)?;
    let count = experts::count(&model, 8, 2)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [false; 2], Some(rope.clone()));
        let parts = (model.intermediate, ["w1", "w3", "w2"]);
        let experts = experts::separate(&model, &format!("{name}.block_sparse_moe"), &count, parts, true);
        model.block(&name, Attention { window, ..attention }, experts)
    };
    let blocks = (0..model.layers).map(block).collect();
    let model = model.build(blocks)?;
    Ok(ModelConfig { aliases: Aliases { prefix: None, endings: &ENDINGS }, ..model })
}
