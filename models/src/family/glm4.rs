//! GLM-4-0414: norms before and after each branch, interleaved rope of half of each head, fused gate and up.
//!
//! Keys and tensors of transformers' `Glm4Config` and `Glm4ForCausalLM`.

use super::{
    cohere::INTERLEAVED,
    rope,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

const GLM4: Defaults = Defaults {
    vocab: 151_552,
    intermediate: 13_696,
    layers: ("num_hidden_layers", 40),
    kv_heads: Some(2),
    head_dim: Some(128),
    max_positions: ("max_position_embeddings", 131_072),
    epsilon: ("rms_norm_eps", 1.5625e-7),
    bos: None,
    eos: &[151_329, 151_336, 151_338],
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, GLM4)?;
    let rope = model.rope(&rope::Defaults { partial: Some(0.5), ..INTERLEAVED })?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", true)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias, false], Some(rope.clone()));
        let mut block = model.block(&name, attention, model.fused_mlp(&format!("{name}.mlp")));
        block.attention.after = Some(model.norm(format!("{name}.post_self_attn_layernorm")));
        block.mlp.after = Some(model.norm(format!("{name}.post_mlp_layernorm")));
        block
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
