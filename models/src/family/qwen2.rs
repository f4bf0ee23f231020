//! Qwen2 and Qwen2.5: biases of queries, keys and values, and optional windows in the upper layers.
//!
//! Keys and tensors of transformers' `Qwen2Config` and `Qwen2ForCausalLM`.

use super::{
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{block::Attention, config::ModelConfig, error::Error, json::Json};

pub(super) const QWEN2: Defaults = Defaults {
    vocab: 151_936,
    intermediate: 22_016,
    kv_heads: Some(32),
    max_positions: ("max_position_embeddings", 32_768),
    bos: None,
    eos: &[],
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, QWEN2)?;
    let rope = model.rope(&ROPE)?;
    let windows = windows(&model)?;
    let block = |(layer, window)| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [true, false], Some(rope.clone()));
        model.block(&name, Attention { window, ..attention }, model.mlp(&format!("{name}.mlp"), false))
    };
    let blocks = windows.into_iter().enumerate().map(block).collect();
    model.build(blocks)
}

/// Returns the window of each layer. Layers from `max_window_layers` on have one.
pub(super) fn windows(model: &Standard<'_>) -> Result<Vec<Option<usize>>, Error> {
    let first = model.json.not_negative("max_window_layers", 28.0)?;
    model.optional_windows(Some(4096), |layer| layer as f64 >= first)
}
