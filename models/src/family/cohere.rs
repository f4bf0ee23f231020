//! Command R and Aya: parallel blocks with one norm, layer norms without biases, interleaved rope, scaled logits.
//!
//! Keys and tensors of transformers' `CohereConfig` and `CohereForCausalLM`.

use super::{
    rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json, layers::NormKind, rope::Pairs};

pub(super) const COHERE: Defaults = Defaults {
    vocab: 256_000,
    hidden: ("hidden_size", 8192),
    intermediate: 22_528,
    layers: ("num_hidden_layers", 40),
    heads: ("num_attention_heads", 64),
    max_positions: ("max_position_embeddings", 8192),
    norm: NormKind::Layer,
    epsilon: ("layer_norm_eps", 1e-5),
    tied: true,
    bos: Some(5),
    eos: &[255_001],
    ..LLAMA
};

pub(super) const INTERLEAVED: rope::Defaults = rope::Defaults { pairs: Pairs::Interleaved, ..ROPE };

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, COHERE)?;
    let rope = model.rope(&rope::Defaults { theta: 500_000.0, ..INTERLEAVED })?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let norms = json.flag("use_qk_norm", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = format!("{name}.self_attn");
        let mut layer = model.attention(&attention, [bias; 2], Some(rope.clone()));
        if norms {
            let names = ["q_norm", "k_norm"].map(|part| format!("{attention}.{part}"));
            let shapes = [model.heads, model.kv_heads].map(|heads| vec![heads, model.head_dim]);
            model.norm_heads(&mut layer, names, shapes);
        }
        model.parallel_block(&name, layer, model.mlp(&format!("{name}.mlp"), false))
    };
    let blocks = (0..model.layers).map(block).collect();
    scale_logits(json, model.build(blocks)?)
}

pub(super) fn scale_logits(json: &Json<'_>, model: ModelConfig) -> Result<ModelConfig, Error> {
    let scale = json.positive("logit_scale")?.unwrap_or(0.0625);
    Ok(model.with_logits(|head| head.scale = scale))
}
