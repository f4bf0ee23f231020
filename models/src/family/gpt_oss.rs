//! gpt-oss: attention sinks, windows in every other layer, experts with biases and a clamped activation.
//!
//! Keys and tensors of transformers' `GptOssConfig` and `GptOssForCausalLM`, for checkpoints that are not quantized.

use super::{
    experts,
    experts::expert_of_stack,
    rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, layer_name, linear, split_fused, weight},
};
use crate::{
    config::ModelConfig,
    error::Error,
    feed_forward::{Activation, Mlp},
    json::Json,
    layers::{Linear, Weight},
};

const GPT_OSS: Defaults = Defaults {
    vocab: 201_088,
    hidden: ("hidden_size", 2880),
    intermediate: 2880,
    layers: ("num_hidden_layers", 36),
    heads: ("num_attention_heads", 64),
    kv_heads: Some(8),
    head_dim: Some(64),
    max_positions: ("max_position_embeddings", 131_072),
    epsilon: ("rms_norm_eps", 1e-5),
    bos: None,
    eos: &[],
    ..LLAMA
};

const YARN: &str = r#"{"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
    "original_max_position_embeddings": 4096}"#;

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, GPT_OSS)?;
    let rope = model.rope(&rope::Defaults { theta: 150_000.0, absent: Some(YARN), ..ROPE })?;
    let bias = json.flag("attention_bias", true)?;
    let window = model.window(Some(128))?;
    let slides = model.slides(window, |layer| layer % 2 == 0)?;
    let count = experts::count(&model, 128, 4)?;
    let activation = Activation::Swish { beta: json.positive("swiglu_alpha")?.unwrap_or(1.702) };
    let limit = Some(json.positive("swiglu_limit")?.unwrap_or(7.0));
    let (hidden, width) = (model.hidden, model.intermediate);
    let block = |(layer, slides): (_, bool)| {
        let name = layer_name(layer);
        let attention_name = format!("{name}.self_attn");
        let mut attention = model.attention(&attention_name, [bias; 2], Some(rope.clone()));
        attention.window = window.filter(|_| slides);
        attention.sinks = Some(weight(format!("{attention_name}.sinks"), [model.heads]));
        let inputs = expert_layer(format!("{name}.mlp.experts.gate_up_proj"), [hidden, 2 * width]);
        let outputs = expert_layer(format!("{name}.mlp.experts.down_proj"), [width, hidden]);
        let router = linear(format!("{name}.mlp.router"), [count.experts, hidden], true);
        let experts = experts::mixture(router, &count, |expert| {
            // Gate and up are interleaved.
            let [gate, up] = split_fused(&expert_of_stack(&inputs, count.experts, expert), width, [1; 2]);
            let down = expert_of_stack(&outputs, count.experts, expert);
            Mlp { activation, limit, up_offset: 1.0, ..model.gated_mlp(gate, up, down) }
        });
        model.block(&name, attention, experts)
    };
    let blocks = slides.into_iter().enumerate().map(block).collect();
    model.build(blocks)
}

/// Returns the layer of one expert, `[inputs, outputs]`, whose tensor names lack the endings `.weight` and `.bias`.
fn expert_layer(name: String, [inputs, outputs]: [usize; 2]) -> Linear {
    let bias = Weight { name: format!("{name}_bias"), shape: vec![outputs] };
    let weight = Weight { name, shape: vec![inputs, outputs] };
    Linear { weight, bias: Some(bias), part: None, matrix: None, transposed: true }
}
