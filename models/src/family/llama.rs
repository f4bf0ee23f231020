//! Llama 1 to 3.2, and models of the same architecture: TinyLlama, SmolLM2 and others of `model_type` llama.
//!
//! Keys and tensors of transformers' `LlamaConfig` and `LlamaForCausalLM`.

use super::{
    rope::ROPE,
    standard::{LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    json.require("pretraining_tp", "1", |value| value.as_u64() == Some(1)).map_err(|error| {
        error.with_hint("set it to 1, as transformers 5 assumes; other values split sums and round differently")
    })?;
    let mut model = Standard::read(json, LLAMA)?;
    let rope = model.rope(&ROPE)?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let mlp_bias = json.flag("mlp_bias", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        model.block(&name, attention, model.mlp(&format!("{name}.mlp"), mlp_bias))
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
