//! StarCoder2: layer norms, biases everywhere, an MLP without a gate.
//!
//! Keys and tensors of transformers' `Starcoder2Config` and `Starcoder2ForCausalLM`.

use super::{
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name, linear},
};
use crate::{
    block::Attention,
    config::ModelConfig,
    error::Error,
    feed_forward::{Activation, Mlp},
    json::Json,
    layers::NormKind,
};

const STARCODER2: Defaults = Defaults {
    vocab: 49_152,
    hidden: ("hidden_size", 3072),
    intermediate: 12_288,
    layers: ("num_hidden_layers", 30),
    heads: ("num_attention_heads", 24),
    kv_heads: Some(2),
    max_positions: ("max_position_embeddings", 4096),
    norm: NormKind::Layer,
    epsilon: ("norm_epsilon", 1e-5),
    norm_bias: true,
    activation: ("hidden_act", Activation::GeluTanh),
    tied: true,
    bos: Some(50_256),
    eos: &[50_256],
    ..LLAMA
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, STARCODER2)?;
    let rope = model.rope(&ROPE)?;
    let window = model.window(None)?;
    let bias = json.flag("use_bias", true)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        let mlp = Mlp {
            activation: model.activation,
            limit: None,
            up_offset: 0.0,
            gate: None,
            up: linear(format!("{name}.mlp.c_fc"), [model.intermediate, model.hidden], bias),
            down: linear(format!("{name}.mlp.c_proj"), [model.hidden, model.intermediate], bias),
        };
        model.block(&name, Attention { window, ..attention }, mlp)
    };
    let blocks = (0..model.layers).map(block).collect();
    model.build(blocks)
}
