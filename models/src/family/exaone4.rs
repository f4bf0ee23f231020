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
    // Beside `layer_types`, which takes precedence, the pattern is a string of letters such as `LLLG`.
    let listed = window.is_none() || json.value("layer_types").is_some();
    let period = if listed { 1 } else { json.size("sliding_window_pattern", 4, 1 << 16)? };
    let slides = model.slides(window, |layer| !(layer + 1).is_multiple_of(period))?;
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
