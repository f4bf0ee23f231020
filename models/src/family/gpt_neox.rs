//! GPT-NeoX and Pythia: parallel blocks with two norms, query, key and value fused head by head.
//!
//! Keys and tensors of transformers' `GPTNeoXConfig` and `GPTNeoXForCausalLM`.

use super::{
    rope,
    rope::ROPE,
    standard::{Defaults, LLAMA, Standard, linear, split_fused, weight},
};
use crate::{
    config::ModelConfig,
    error::Error,
    feed_forward::{Activation, Mlp},
    json::Json,
    layers::NormKind,
};

const GPT_NEOX: Defaults = Defaults {
    vocab: 50_432,
    hidden: ("hidden_size", 6144),
    intermediate: 24_576,
    layers: ("num_hidden_layers", 44),
    heads: ("num_attention_heads", 64),
    heads_have_keys: false,
    norm: NormKind::Layer,
    epsilon: ("layer_norm_eps", 1e-5),
    norm_bias: true,
    activation: ("hidden_act", Activation::Gelu),
    bos: Some(0),
    ..LLAMA
};

const PARTIAL: rope::Defaults = rope::Defaults {
    theta_key: Some("rotary_emb_base"),
    partial: Some(0.25),
    partial_key: "rotary_pct",
    ..ROPE
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, GPT_NEOX)?;
    let rope = model.rope(&PARTIAL)?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", true)?;
    let parallel = json.flag("use_parallel_residual", true)?;
    let width = model.heads * model.head_dim;
    let block = |layer| {
        let name = format!("gpt_neox.layers.{layer}");
        let all = linear(format!("{name}.attention.query_key_value"), [3 * width, model.hidden], bias);
        let [query, key, value] = split_fused(&all, model.heads, [model.head_dim; 3]);
        let output = linear(format!("{name}.attention.dense"), [model.hidden, width], bias);
        let attention = model.attention_from([query, key, value, output], Some(rope.clone()));
        let mlp = Mlp {
            activation: model.activation,
            limit: None,
            up_offset: 0.0,
            gate: None,
            up: linear(format!("{name}.mlp.dense_h_to_4h"), [model.intermediate, model.hidden], true),
            down: linear(format!("{name}.mlp.dense_4h_to_h"), [model.hidden, model.intermediate], true),
        };
        let mut block = model.block(&name, attention, mlp);
        block.parallel = parallel;
        block
    };
    let blocks = (0..model.layers).map(block).collect();
    let final_norm = model.norm("gpt_neox.final_layer_norm".into());
    let mut model = model.build(blocks)?;
    model.final_norm = Some(final_norm);
    model.embedding.weight = weight("gpt_neox.embed_in.weight", [model.vocab, model.hidden]);
    let head = linear("embed_out", [model.vocab, model.hidden], false);
    Ok(model.with_logits(|logits| logits.linear = head))
}
