//! Qwen1.5-MoE and Qwen2-MoE: Qwen2 with experts, and a shared expert.
//!
//! Keys and tensors of transformers' `Qwen2MoeConfig` and `Qwen2MoeForCausalLM`.

use super::{
    experts,
    experts::LAYER_NAMES,
    qwen2::QWEN2,
    rope::ROPE,
    standard::{Defaults, Standard, layer_name, linear},
};
use crate::{
    block::Attention,
    config::ModelConfig,
    error::Error,
    feed_forward::{FeedForward, Shared},
    json::Json,
};

const QWEN2_MOE: Defaults = Defaults {
    hidden: ("hidden_size", 2048),
    intermediate: 5632,
    layers: ("num_hidden_layers", 24),
    heads: ("num_attention_heads", 16),
    kv_heads: Some(16),
    ..QWEN2
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, QWEN2_MOE)?;
    let rope = model.rope(&ROPE)?;
    let last = json.not_negative("max_window_layers", 28.0)?;
    let windows = model.optional_windows(Some(4096), |layer| layer % 2 == 0 && (layer as f64) < last)?;
    let count = experts::count(&model, 60, 4)?;
    let width = json.size("moe_intermediate_size", 1408, 1 << 24)?;
    let shared_width = json.size("shared_expert_intermediate_size", 5632, 1 << 24)?;
    let normalized = json.flag("norm_topk_prob", false)?;
    let bias = json.flag("qkv_bias", true)?;
    let sparse = experts::sparse_layers(&model)?;
    let block = |(layer, window)| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias, false], Some(rope.clone()));
        let mlp = format!("{name}.mlp");
        let mixture = || {
            let mut experts = experts::separate(&model, &mlp, &count, (width, LAYER_NAMES), normalized);
            experts.shared = Some(Shared {
                mlp: model.mlp_with_width(&format!("{mlp}.shared_expert"), shared_width, false),
                gate: Some(linear(format!("{mlp}.shared_expert_gate"), [1, model.hidden], false)),
            });
            FeedForward::from(experts)
        };
        let mlp = if sparse[layer] { mixture() } else { model.mlp(&mlp, false).into() };
        model.block(&name, Attention { window, ..attention }, mlp)
    };
    let blocks = windows.into_iter().enumerate().map(block).collect();
    model.build(blocks)
}
