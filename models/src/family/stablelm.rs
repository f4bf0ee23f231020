//! StableLM: layer norms, and rope of a quarter of each head.
//!
//! Keys and tensors of transformers' `StableLmConfig` and `StableLmForCausalLM`.

use super::{
    rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json, layers::NormKind};

const STABLELM: Defaults = Defaults {
    vocab: 50_304,
    hidden: ("hidden_size", 2560),
    intermediate: 6912,
    kv_heads: Some(32),
    max_positions: ("max_position_embeddings", 4096),
    norm: NormKind::Layer,
    epsilon: ("layer_norm_eps", 1e-5),
    norm_bias: true,
    bos: Some(0),
    eos: &[0],
    ..LLAMA
};

/// The most norms of heads in a model. No checkpoint comes near.
const HEAD_NORMS_MAX: usize = 1 << 16;

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, STABLELM)?;
    let rope = model.rope(&rope::Defaults { partial: Some(0.25), ..ROPE })?;
    model.refuse_windows()?;
    let norms = json.flag("qk_layernorm", false)?;
    if norms {
        // Each head of each layer has a weight of its own.
        json.size("num_attention_heads", model.heads, HEAD_NORMS_MAX / model.layers)?;
    }
    let bias = json.flag("use_qkv_bias", false)?;
    let parallel = json.flag("use_parallel_residual", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention_name = format!("{name}.self_attn");
        let mut attention = model.attention(&attention_name, [bias, false], Some(rope.clone()));
        if norms {
            model.norm_heads_separately(&mut attention, &attention_name);
        }
        let mlp = model.mlp(&format!("{name}.mlp"), false);
        if parallel {
            model.parallel_block(&name, attention, mlp)
        } else {
            model.block(&name, attention, mlp)
        }
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
