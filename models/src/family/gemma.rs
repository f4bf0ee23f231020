//! Gemma: norms that scale by one plus their weight, and scaled embeddings.
//!
//! Keys and tensors of transformers' `GemmaConfig` and `GemmaForCausalLM`.

use super::{
    gemma2::finish,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, feed_forward::Activation, json::Json};

const GEMMA: Defaults = Defaults {
    vocab: 256_000,
    hidden: ("hidden_size", 3072),
    intermediate: 24_576,
    layers: ("num_hidden_layers", 28),
    heads: ("num_attention_heads", 16),
    kv_heads: Some(16),
    head_dim: Some(256),
    max_positions: ("max_position_embeddings", 8192),
    norm_offset: 1.0,
    activation: ("hidden_act", Activation::GeluTanh),
    tied: true,
    bos: Some(2),
    eos: &[1],
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, GEMMA)?;
    // The first release of the checkpoints says `gelu`, which meant the approximation.
    if model.activation == Activation::Gelu {
        model.activation = Activation::GeluTanh;
    }
    let rope = model.rope(&ROPE)?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        model.block(&name, attention, model.mlp(&format!("{name}.mlp"), false))
    };
    let blocks = (0..model.layers).map(block).collect();
    Ok(finish(model.build(blocks)?, None))
}
