//! OLMo 2: norms only after the branches, and norms of all query heads and of all key heads as one vector.
//!
//! Keys and tensors of transformers' `Olmo2Config` and `Olmo2ForCausalLM`.

use super::{
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{
    block::{Attention, Block},
    config::ModelConfig,
    error::Error,
    json::Json,
    rope::Rope,
};

pub(super) const OLMO2: Defaults =
    Defaults { vocab: 50_304, epsilon: ("rms_norm_eps", 1e-5), bos: None, eos: &[50_279], ..LLAMA };

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, OLMO2)?;
    let rope = model.rope(&ROPE)?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let blocks = (0..model.layers).map(|layer| block(&model, layer, bias, &rope, None)).collect();
    model.build(blocks)
}

pub(super) fn block(
    model: &Standard<'_>,
    layer: usize,
    bias: bool,
    rope: &Rope,
    window: Option<usize>,
) -> Block {
    let name = layer_name(layer);
    let attention = format!("{name}.self_attn");
    let mut layer = model.attention(&attention, [bias; 2], Some(rope.clone()));
    model.norm_all_heads(&mut layer, &attention);
    let mlp = model.mlp(&format!("{name}.mlp"), false);
    model.post_norm_block(&name, Attention { window, ..layer }, mlp)
}
