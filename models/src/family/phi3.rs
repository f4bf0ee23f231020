//! Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: fused query, key and value, fused gate and up, LongRoPE.
//!
//! Keys and tensors of transformers' `Phi3Config` and `Phi3ForCausalLM`.

use super::{
    rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name, linear, split_fused},
};
use crate::{block::Attention, config::ModelConfig, error::Error, json::Json};

const PHI3: Defaults = Defaults {
    vocab: 32_064,
    hidden: ("hidden_size", 3072),
    intermediate: 8192,
    max_positions: ("max_position_embeddings", 4096),
    epsilon: ("rms_norm_eps", 1e-5),
    eos: &[32_000],
    ..LLAMA
};

const PARTIAL: rope::Defaults = rope::Defaults {
    partial: Some(1.0),
    // Earlier releases use the other names.
    longrope: &["longrope", "su", "yarn"],
    original: Some(4096),
    ..ROPE
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, PHI3)?;
    let rope = model.rope(&PARTIAL)?;
    let window = model.window(None)?;
    let (queries, keys) = (model.heads * model.head_dim, model.kv_heads * model.head_dim);
    let block = |layer| {
        let name = layer_name(layer);
        let all = linear(format!("{name}.self_attn.qkv_proj"), [queries + 2 * keys, model.hidden], false);
        let [query, key, value] = split_fused(&all, 1, [queries, keys, keys]);
        let output = linear(format!("{name}.self_attn.o_proj"), [model.hidden, queries], false);
        let attention = model.attention_from([query, key, value, output], Some(rope.clone()));
        model.block(&name, Attention { window, ..attention }, model.fused_mlp(&format!("{name}.mlp")))
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
