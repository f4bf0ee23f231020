//! OLMo 2: norms after the branches and not before, and of all query heads, and all key heads, as one vector.
//!
//! transformers' `Olmo2Config` and `Olmo2ForCausalLM`.

use super::{
    json::Json,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name},
};
use crate::{Attention, Block, Error, ModelConfig, Rope};

pub(super) const OLMO2: Defaults =
    Defaults { vocab: 50_304, epsilon: ("rms_norm_eps", 1e-5), bos: None, eos: &[50_279], ..LLAMA };

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, OLMO2)?;
    let rope = model.rope(&ROPE)?;
    model.no_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let blocks = (0..model.layers).map(|layer| block(&model, layer, bias, &rope, None)).collect();
    model.model("olmo2", blocks)
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
    model.block_of_norms_after(&name, Attention { window, ..layer }, mlp)
}
