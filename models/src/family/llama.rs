//! Llama 1, 2, 3, 3.1, 3.2 and what was made in their image: TinyLlama, SmolLM2 and others of `model_type` llama.
//!
//! The keys and their defaults are those of transformers' `LlamaConfig`, the tensor names and shapes those of its
//! `LlamaForCausalLM`.

use super::{
    json::Json,
    rope::ROPE,
    standard::{LLAMA, Standard, layer_name},
};
use crate::{Error, ModelConfig};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    json.only("pretraining_tp", "1", |value| value.as_u64() == Some(1)).map_err(|error| {
        error.with_hint("it splits sums, which rounds differently; transformers 5 ignores it, as 1 would")
    })?;
    let mut model = Standard::read(json, LLAMA)?;
    let rope = model.rope(&ROPE)?;
    model.no_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let mlp_bias = json.flag("mlp_bias", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        model.block(&name, attention, model.mlp(&format!("{name}.mlp"), mlp_bias))
    };
    let blocks = (0..model.layers).map(block).collect();
    model.model("llama", blocks)
}
