//! Gemma 3's language models: five of six layers with a window and rope of their own, norms of queries and keys.
//!
//! Keys and tensors of transformers' `Gemma3TextConfig` and `Gemma3ForCausalLM`.

use super::{
    gemma2::{GEMMA2, block, finish, score_scale},
    rope,
    rope::ROPE,
    standard::{Defaults, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

const GEMMA3: Defaults =
    Defaults { vocab: 262_208, max_positions: ("max_position_embeddings", 131_072), ..GEMMA2 };

const GLOBAL: rope::Defaults =
    rope::Defaults { theta: 1_000_000.0, layer_type: Some("full_attention"), ..ROPE };

const LOCAL: rope::Defaults = rope::Defaults {
    theta_key: Some("rope_local_base_freq"),
    scaled: false,
    layer_type: Some("sliding_attention"),
    ..ROPE
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, GEMMA3)?;
    let ropes = [model.rope(&GLOBAL)?, model.rope(&LOCAL)?];
    let bias = json.flag("attention_bias", false)?;
    let scale = score_scale(json)?;
    // transformers reads the key but does not use it.
    json.require("attn_logit_softcapping", "null", |_| false)?;
    let window = model.window(Some(4096))?;
    let slides = model.slides_by_pattern(window, 6)?;
    let block = |(layer, slides): (_, bool)| {
        let name = layer_name(layer);
        let attention = format!("{name}.self_attn");
        let rope = ropes[usize::from(slides)].clone();
        let mut layer = model.attention(&attention, [bias; 2], Some(rope));
        (layer.scale, layer.window) = (scale, window.filter(|_| slides));
        model.norm_each_head(&mut layer, &attention);
        block(&model, &name, layer)
    };
    let blocks = slides.into_iter().enumerate().map(block).collect();
    let soft_cap = json.positive_or_null("final_logit_softcapping", None)?;
    Ok(finish(model.build(blocks)?, soft_cap))
}
