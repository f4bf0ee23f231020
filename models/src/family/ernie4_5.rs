//! ERNIE 4.5: Llama with interleaved rope, and one switch for all biases.
//!
//! Keys and tensors of transformers' `Ernie4_5Config` and `Ernie4_5ForCausalLM`.

use super::{
    cohere::INTERLEAVED,
    rope,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

const ERNIE4_5: Defaults = Defaults {
    vocab: 103_424,
    hidden: ("hidden_size", 1024),
    intermediate: 3072,
    layers: ("num_hidden_layers", 18),
    heads: ("num_attention_heads", 16),
    kv_heads: Some(2),
    head_dim: Some(128),
    max_positions: ("max_position_embeddings", 131_072),
    epsilon: ("rms_norm_eps", 1e-5),
    tied: true,
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, ERNIE4_5)?;
    let rope = model.rope(&rope::Defaults { theta: 500_000.0, ..INTERLEAVED })?;
    model.refuse_windows()?;
    let bias = json.flag("use_bias", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        model.block(&name, attention, model.mlp(&format!("{name}.mlp"), bias))
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
