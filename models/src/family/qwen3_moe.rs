//! Qwen3-MoE: Qwen3 with experts.
//!
//! Keys and tensors of transformers' `Qwen3MoeConfig` and `Qwen3MoeForCausalLM`.

use super::{
    experts,
    experts::LAYER_NAMES,
    qwen2::QWEN2,
    rope::ROPE,
    standard::{Defaults, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, feed_forward::FeedForward, json::Json};

const QWEN3_MOE: Defaults = Defaults {
    hidden: ("hidden_size", 2048),
    intermediate: 6144,
    layers: ("num_hidden_layers", 24),
    kv_heads: Some(4),
    ..QWEN2
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, QWEN3_MOE)?;
    let rope = model.rope(&ROPE)?;
    let bias = json.flag("attention_bias", false)?;
    let window = model.optional_window(Some(4096))?;
    let count = experts::count(&model, 128, 8)?;
    let width = json.size("moe_intermediate_size", 768, 1 << 24)?;
    let normalized = json.flag("norm_topk_prob", false)?;
    let sparse = experts::sparse_layers(&model)?;
    let block = |layer: usize| {
        let name = layer_name(layer);
        let attention = format!("{name}.self_attn");
        let mlp = format!("{name}.mlp");
        let mlp = if sparse[layer] {
            FeedForward::from(experts::separate(&model, &mlp, &count, (width, LAYER_NAMES), normalized))
        } else {
            model.mlp(&mlp, false).into()
        };
        let mut layer = model.attention(&attention, [bias; 2], Some(rope.clone()));
        layer.window = window;
        model.norm_each_head(&mut layer, &attention);
        model.block(&name, layer, mlp)
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
