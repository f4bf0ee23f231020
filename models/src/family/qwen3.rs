//! Qwen3: norms of each query and key head.
//!
//! Keys and tensors of transformers' `Qwen3Config` and `Qwen3ForCausalLM`.

use super::{
    qwen2::{QWEN2, windows},
    rope::ROPE,
    standard::{Defaults, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

const QWEN3: Defaults = Defaults { head_dim: Some(128), ..QWEN2 };

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, QWEN3)?;
    let rope = model.rope(&ROPE)?;
    let bias = json.flag("attention_bias", false)?;
    let windows = windows(&model)?;
    let block = |(layer, window)| {
        let name = layer_name(layer);
        let attention = format!("{name}.self_attn");
        let mut layer = model.attention(&attention, [bias; 2], Some(rope.clone()));
        layer.window = window;
        model.norm_each_head(&mut layer, &attention);
        model.block(&name, layer, model.mlp(&format!("{name}.mlp"), false))
    };
    let blocks = windows.into_iter().enumerate().map(block).collect();
    model.build(blocks)
}
