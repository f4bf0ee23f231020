//! Mistral: Llama with a window. Mistral 7B v0.1 has one of 4096; v0.2 and later, Nemo and Small have none.
//!
//! Keys and tensors of transformers' `MistralConfig` and `MistralForCausalLM`.

use super::{
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{block::Attention, config::ModelConfig, error::Error, json::Json};

const MISTRAL: Defaults = Defaults {
    intermediate: 14_336,
    kv_heads: Some(8),
    max_positions: ("max_position_embeddings", 131_072),
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, MISTRAL)?;
    let rope = model.rope(&ROPE)?;
    let window = model.window(Some(4096))?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [false; 2], Some(rope.clone()));
        model.block(&name, Attention { window, ..attention }, model.mlp(&format!("{name}.mlp"), false))
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
