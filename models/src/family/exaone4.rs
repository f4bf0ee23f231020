//! EXAONE 4: norms after the branches and of each query and key head; with windows, rope only in layers that have one.
//!
//! Keys and tensors of transformers' `Exaone4Config` and `Exaone4ForCausalLM`.

use super::{
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

const EXAONE4: Defaults = Defaults {
    vocab: 102_400,
    intermediate: 16_384,
    kv_heads: Some(32),
    epsilon: ("rms_norm_eps", 1e-5),
    bos: Some(0),
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, EXAONE4)?;
    let rope = model.rope(&ROPE)?;
    let window = model.window(Some(4096))?;
    let slides = match window {
        Some(_) => model.slides_by_pattern(window, 4)?,
        // Then the pattern says nothing.
        None => model.slides(None, |_| false)?,
    };
    let block = |(layer, slides): (_, bool)| {
        let name = layer_name(layer);
        let attention = format!("{name}.self_attn");
        let rope = (window.is_none() || slides).then(|| rope.clone());
        let mut layer = model.attention(&attention, [false; 2], rope);
        layer.window = window.filter(|_| slides);
        model.norm_each_head(&mut layer, &attention);
        model.post_norm_block(&name, layer, model.mlp(&format!("{name}.mlp"), false))
    };
    let blocks = slides.into_iter().enumerate().map(block).collect();
    model.build(blocks)
}
