//! Phi-3, Phi-3.5 and Phi-4, mini too: queries, keys and values share a tensor, and so do gate and up; LongRoPE.
//!
//! transformers' `Phi3Config` and `Phi3ForCausalLM`.

use super::{
    json::Json,
    rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name, linear, parts},
};
use crate::{Attention, Error, ModelConfig};

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
    // What earlier releases called it.
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
        let [query, key, value] = parts(&all, 1, [queries, keys, keys]);
        let output = linear(format!("{name}.self_attn.o_proj"), [model.hidden, queries], false);
        let attention = model.attention_of([query, key, value, output], Some(rope.clone()));
        model.block(&name, Attention { window, ..attention }, model.fused_mlp(&format!("{name}.mlp")))
    };
    let blocks = (0..model.layers).map(block).collect();
    model.model("phi3", blocks)
}
