//! Command R7B and Command A: Command R with windows in three of four layers, and rope only in those.
//!
//! Keys and tensors of transformers' `Cohere2Config` and `Cohere2ForCausalLM`.

use super::{
    cohere::{COHERE, INTERLEAVED, scale_logits},
    standard::{Standard, layer_name},
};
use crate::{block::Attention, config::ModelConfig, error::Error, json::Json};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, COHERE)?;
    let rope = model.rope(&INTERLEAVED)?;
    let bias = json.flag("attention_bias", false)?;
    let window = model.window(Some(4096))?;
    let slides = model.slides_by_pattern(window, 4)?;
    let block = |(layer, slides): (_, bool)| {
        let name = layer_name(layer);
        let rope = slides.then(|| rope.clone());
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], rope);
        let window = window.filter(|_| slides);
        let mlp = model.mlp(&format!("{name}.mlp"), false);
        model.parallel_block(&name, Attention { window, ..attention }, mlp)
    };
    let blocks = slides.into_iter().enumerate().map(block).collect();
    scale_logits(json, model.build(blocks)?)
}
