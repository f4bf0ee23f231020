//! Seed-OSS: Llama with biases of queries, keys and values, and its own `head_dim`.
//!
//! Keys and tensors of transformers' `SeedOssConfig` and `SeedOssForCausalLM`.

use super::{
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

const SEED_OSS: Defaults = Defaults {
    vocab: 155_136,
    intermediate: 27_648,
    layers: ("num_hidden_layers", 64),
    heads: ("num_attention_heads", 80),
    kv_heads: Some(8),
    head_dim: Some(128),
    max_positions: ("max_position_embeddings", 524_288),
    bos: Some(0),
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, SEED_OSS)?;
    let rope = model.rope(&ROPE)?;
    model.refuse_windows()?;
    let biases = [json.flag("attention_bias", true)?, json.flag("attention_out_bias", false)?];
    let mlp_bias = json.flag("mlp_bias", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), biases, Some(rope.clone()));
        model.block(&name, attention, model.mlp(&format!("{name}.mlp"), mlp_bias))
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
