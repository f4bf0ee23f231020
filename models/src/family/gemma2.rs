//! Gemma 2: soft caps of scores and logits, a window in every other layer, norms before and after each branch.
//!
//! Keys and tensors of transformers' `Gemma2Config` and `Gemma2ForCausalLM`.

use super::{
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{
    block::{Attention, Block, Branch},
    config::ModelConfig,
    error::Error,
    feed_forward::{Activation, Mlp},
    json::Json,
};

pub(super) const GEMMA2: Defaults = Defaults {
    vocab: 256_000,
    hidden: ("hidden_size", 2304),
    intermediate: 9216,
    layers: ("num_hidden_layers", 26),
    heads: ("num_attention_heads", 8),
    kv_heads: Some(4),
    head_dim: Some(256),
    max_positions: ("max_position_embeddings", 8192),
    norm_offset: 1.0,
    activation: ("hidden_activation", Activation::GeluTanh),
    tied: true,
    bos: Some(2),
    eos: &[1],
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, GEMMA2)?;
    let rope = model.rope(&ROPE)?;
    let bias = json.flag("attention_bias", false)?;
    let soft_cap = json.positive_or_null("attn_logit_softcapping", Some(50.0))?;
    let scale = score_scale(json)?;
    let window = model.window(Some(4096))?;
    let slides = model.slides(window, |layer| layer % 2 == 0)?;
    let block = |(layer, slides): (_, bool)| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        let window = window.filter(|_| slides);
        block(&model, &name, Attention { scale, soft_cap, window, ..attention })
    };
    let blocks = slides.into_iter().enumerate().map(block).collect();
    let soft_cap = json.positive_or_null("final_logit_softcapping", Some(30.0))?;
    Ok(finish(model.build(blocks)?, soft_cap))
}

/// Returns the factor of the scores. `query_pre_attn_scalar` takes the place of `head_dim` in it.
pub(super) fn score_scale(json: &Json<'_>) -> Result<f64, Error> {
    Ok(json.positive("query_pre_attn_scalar")?.unwrap_or(256.0).powf(-0.5))
}

/// Returns a block with norms before and after each branch.
pub(super) fn block(model: &Standard<'_>, name: &str, attention: Attention) -> Block {
    let norm = |part| Some(model.norm(format!("{name}.{part}")));
    let mlp: Mlp = model.mlp(&format!("{name}.mlp"), false);
    Block {
        attention: Branch {
            before: norm("input_layernorm"),
            after: norm("post_attention_layernorm"),
            ..Branch::of(attention)
        },
        mlp: Branch {
            before: norm("pre_feedforward_layernorm"),
            after: norm("post_feedforward_layernorm"),
            ..Branch::of(mlp.into())
        },
        parallel: false,
    }
}

/// Scales the embeddings, and caps the logits.
pub(super) fn finish(mut model: ModelConfig, soft_cap: Option<f64>) -> ModelConfig {
    model.embedding.scale = (model.hidden as f64).sqrt();
    model.with_logits(|head| head.soft_cap = soft_cap)
}
