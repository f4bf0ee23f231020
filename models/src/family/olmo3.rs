//! OLMo 3: OLMo 2 with a window and unscaled rope in three of four layers.
//!
//! Keys and tensors of transformers' `Olmo3Config` and `Olmo3ForCausalLM`.

use super::{
    olmo2::{OLMO2, block},
    rope,
    rope::ROPE,
    standard::Standard,
};
use crate::{config::ModelConfig, error::Error, json::Json};

const GLOBAL: rope::Defaults =
    rope::Defaults { theta: 500_000.0, layer_type: Some("full_attention"), ..ROPE };

/// Rope of the layers with a window, to which the outer `rope_theta` does not apply.
const LOCAL: rope::Defaults =
    rope::Defaults { theta_key: None, scaled: false, layer_type: Some("sliding_attention"), ..GLOBAL };

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, OLMO2)?;
    let ropes = [model.rope(&GLOBAL)?, model.rope(&LOCAL)?];
    let bias = json.flag("attention_bias", false)?;
    let window = model.window(Some(4096))?;
    let slides = model.slides(window, |layer| !(layer + 1).is_multiple_of(4))?;
    let block = |(layer, slides): (_, bool)| {
        block(&model, layer, bias, &ropes[usize::from(slides)], window.filter(|_| slides))
    };
    let blocks = slides.into_iter().enumerate().map(block).collect();
    model.build(blocks)
}
