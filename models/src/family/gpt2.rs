//! GPT-2: learned positions in place of rope, weights stored with inputs first.
//!
//! Keys and tensors of transformers' `GPT2Config` and `GPT2LMHeadModel`.

use super::standard::{Defaults, LLAMA, Standard, linear, split_fused, weight};
use crate::{
    config::ModelConfig,
    error::Error,
    feed_forward::{Activation, Mlp},
    json::Json,
    layers::{Linear, NormKind},
};

const GPT2: Defaults = Defaults {
    vocab: 50_257,
    hidden: ("n_embd", 768),
    layers: ("n_layer", 12),
    heads: ("n_head", 12),
    max_positions: ("n_positions", 1024),
    heads_have_keys: false,
    norm: NormKind::Layer,
    epsilon: ("layer_norm_epsilon", 1e-5),
    norm_bias: true,
    activation: ("activation_function", Activation::GeluTanh),
    tied: true,
    bos: Some(50_256),
    eos: &[50_256],
    ..LLAMA
};

/// Prefix of tensor names, except in checkpoints of the first release.
const PREFIX: &str = "transformer.";

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let model = Standard::read(json, GPT2)?;
    model.refuse_windows()?;
    json.require("add_cross_attention", "false", |value| value.as_bool() == Some(false))?;
    // transformers takes these names for the same numbers, and lets them win.
    for (key, value) in [
        ("hidden_size", model.hidden),
        ("num_hidden_layers", model.layers),
        ("num_attention_heads", model.heads),
        ("max_position_embeddings", model.max_positions),
    ] {
        json.require(key, &format!("{value}, as GPT-2's own key has it"), |found| found.as_u64() == Some(value as u64))?;
    }
    let hidden = model.hidden;
    let intermediate = json.size_or_null("n_inner", None, 1 << 24)?.unwrap_or(4 * hidden);
    let scaled = json.flag("scale_attn_weights", true)?;
    let by_layer = json.flag("scale_attn_by_inverse_layer_idx", false)?;
    let block = |layer| {
        let name = format!("{PREFIX}h.{layer}");
        let all = transposed(format!("{name}.attn.c_attn"), [hidden, 3 * hidden]);
        let [query, key, value] = split_fused(&all, 1, [hidden; 3]);
        let output = transposed(format!("{name}.attn.c_proj"), [hidden, hidden]);
        let mut attention = model.attention_from([query, key, value, output], None);
        if !scaled {
            attention.scale = 1.0;
        }
        if by_layer {
            attention.scale /= (layer + 1) as f64;
        }
        let mlp = Mlp {
            activation: model.activation,
            limit: None,
            up_offset: 0.0,
            gate: None,
            up: transposed(format!("{name}.mlp.c_fc"), [hidden, intermediate]),
            down: transposed(format!("{name}.mlp.c_proj"), [intermediate, hidden]),
        };
        let mut block = model.block(&name, attention, mlp);
        block.attention.before = Some(model.norm(format!("{name}.ln_1")));
        block.mlp.before = Some(model.norm(format!("{name}.ln_2")));
        block
    };
    let blocks = (0..model.layers).map(block).collect();
    let final_norm = model.norm(format!("{PREFIX}ln_f"));
    let mut model = model.build(blocks)?;
    model.final_norm = Some(final_norm);
    model.embedding.weight = weight(format!("{PREFIX}wte.weight"), [model.vocab, hidden]);
    model.embedding.positions = Some(weight(format!("{PREFIX}wpe.weight"), [model.max_positions, hidden]));
    model.aliases.prefix = Some(PREFIX);
    Ok(model)
}

/// Returns a linear layer with a bias whose weight is stored as `[inputs, outputs]`.
fn transposed(name: String, [inputs, outputs]: [usize; 2]) -> Linear {
    let layer = linear(name, [outputs, inputs], true);
    let weight = weight(layer.weight.name, [inputs, outputs]);
    Linear { weight, transposed: true, ..layer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;

    fn names(model: &ModelConfig) -> Vec<&str> {
        model.weights().into_iter().map(|weight| weight.name.as_str()).collect()
    }

    #[test]
    fn weights_take_the_names_in_the_checkpoint() {
        let model = ModelConfig::from_json(r#"{"model_type": "gpt2", "n_layer": 2}"#).unwrap();
        assert!(names(&model).iter().all(|name| name.starts_with(PREFIX)));
        let bare = names(&model).into_iter().map(|name| &name[PREFIX.len()..]).collect::<Vec<_>>();
        let first_release = model.clone().with_tensors(|name| bare.contains(&name));
        assert_eq!(names(&first_release), bare);
        assert_eq!(model.clone().with_tensors(|name| names(&model).contains(&name)), model);
    }

    #[test]
    fn an_untied_head_has_no_prefix() {
        let model = ModelConfig::from_json(r#"{"model_type": "gpt2", "n_layer": 2}"#).unwrap();
        for prefix in [PREFIX, ""] {
            let embedding = format!("{prefix}wte.weight");
            let untied = model.clone().with_tensors(|name| name == embedding || name == "lm_head.weight");
            assert!(matches!(&untied.head, Head::Logits(head) if !head.tied));
            assert_eq!(names(&untied).last(), Some(&"lm_head.weight"));
        }
    }

    #[test]
    fn a_tied_weight_may_have_the_name_of_the_head() {
        let model = ModelConfig::from_json(r#"{"model_type": "gpt2", "n_layer": 2}"#).unwrap();
        let found = model.with_tensors(|name| name == "lm_head.weight");
        assert!(matches!(&found.head, Head::Logits(head) if head.tied));
        assert_eq!(names(&found).first(), Some(&"lm_head.weight"));
    }
}
