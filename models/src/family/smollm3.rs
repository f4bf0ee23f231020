//! SmolLM3: Llama without rope in every fourth layer.
//!
//! Keys and tensors of transformers' `SmolLM3Config` and `SmolLM3ForCausalLM`.

use super::{
    rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{block::Attention, config::ModelConfig, error::Error, json::Json};

const SMOLLM3: Defaults = Defaults {
    vocab: 128_256,
    hidden: ("hidden_size", 2048),
    layers: ("num_hidden_layers", 36),
    heads: ("num_attention_heads", 16),
    kv_heads: Some(4),
    max_positions: ("max_position_embeddings", 32_768),
    tied: true,
    bos: Some(128_000),
    eos: &[128_001],
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, SMOLLM3)?;
    let rope = model.rope(&rope::Defaults { theta: 2_000_000.0, ..ROPE })?;
    let rotates: Vec<bool> = match json.value("no_rope_layers") {
        Some(listed) => {
            // More than there are layers may be listed, as in a model that was cut.
            let count = listed.as_array().map_or(0, Vec::len).max(model.layers);
            json.list("no_rope_layers", count, "ones, or zeros where there is no rope", |value| {
                value.as_u64().filter(|&flag| flag < 2).map(|flag| flag == 1)
            })?
        }
        None => {
            let interval = json.size("no_rope_layer_interval", 4, 1 << 16)?;
            (1..=model.layers).map(|layer| !layer.is_multiple_of(interval)).collect()
        }
    };
    let windows = model.optional_windows(None, |layer| !rotates[layer])?;
    let bias = json.flag("attention_bias", false)?;
    let mlp_bias = json.flag("mlp_bias", false)?;
    let block = |(layer, window)| {
        let name = layer_name(layer);
        let rope = rotates[layer].then(|| rope.clone());
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], rope);
        model.block(&name, Attention { window, ..attention }, model.mlp(&format!("{name}.mlp"), mlp_bias))
    };
    let blocks = windows.into_iter().enumerate().map(block).collect();
    model.build(blocks)
}
