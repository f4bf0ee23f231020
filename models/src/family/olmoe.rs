//! OLMoE: 64 small experts, and norms of all query heads and of all key heads as one vector.
//!
//! Keys and tensors of transformers' `OlmoeConfig` and `OlmoeForCausalLM`.

use super::{
    experts,
    experts::LAYER_NAMES,
    olmo2::OLMO2,
    rope::ROPE,
    standard::{Defaults, Standard, layer_name},
};
use crate::{config::ModelConfig, error::Error, json::Json};

const OLMOE: Defaults = Defaults {
    hidden: ("hidden_size", 2048),
    intermediate: 2048,
    layers: ("num_hidden_layers", 16),
    heads: ("num_attention_heads", 16),
    max_positions: ("max_position_embeddings", 4096),
    ..OLMO2
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, OLMOE)?;
    let rope = model.rope(&ROPE)?;
    model.refuse_windows()?;
    let clip = json.positive_or_null("clip_qkv", None)?;
    let bias = json.flag("attention_bias", false)?;
    let count = experts::count(&model, 64, 8)?;
    let normalized = json.flag("norm_topk_prob", false)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = format!("{name}.self_attn");
        let mut layer = model.attention(&attention, [bias; 2], Some(rope.clone()));
        model.norm_all_heads(&mut layer, &attention);
        layer.clip = clip;
        let parts = (model.intermediate, LAYER_NAMES);
        model.block(
            &name,
            layer,
            experts::separate(&model, &format!("{name}.mlp"), &count, parts, normalized),
        )
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
