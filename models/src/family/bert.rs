//! BERT, an encoder with norms after each addition: MiniLM, BGE, E5 and GTE.
//!
//! Keys and tensors of transformers' `BertConfig` and `BertModel`, with the first token type for every token. BERT's pooler, a
//! layer for the first token, is ignored, as sentence-transformers does not use it.

use super::standard::{Defaults, LLAMA, Standard, linear, weight};
use crate::{
    aliases::Aliases,
    block::{Block, Branch},
    config::ModelConfig,
    error::Error,
    feed_forward::{Activation, Mlp},
    head::{Head, Pooling},
    json::Json,
    layers::NormKind,
};

const BERT: Defaults = Defaults {
    architectures: &["BertModel", "BertForMaskedLM", "BertForPreTraining"],
    vocab: 30_522,
    hidden: ("hidden_size", 768),
    intermediate: 3072,
    layers: ("num_hidden_layers", 12),
    heads: ("num_attention_heads", 12),
    heads_have_keys: false,
    max_positions: ("max_position_embeddings", 512),
    norm: NormKind::Layer,
    epsilon: ("layer_norm_eps", 1e-12),
    causal: false,
    norm_bias: true,
    activation: ("hidden_act", Activation::Gelu),
    bos: None,
    eos: &[],
    ..LLAMA
};

/// Name endings of norms, and those in checkpoints from before PyTorch 1.0.
const ENDINGS: [(&str, &str); 2] =
    [(".LayerNorm.weight", ".LayerNorm.gamma"), (".LayerNorm.bias", ".LayerNorm.beta")];

/// Prefixes of tensors that pooling does not use: position ids and other heads.
const IGNORED_PREFIXES: [&str; 5] =
    ["embeddings.position_ids", "bert.embeddings.position_ids", "pooler.", "bert.pooler.", "cls."];

/// Prefix of tensor names in checkpoints that have another head.
const PREFIX: &str = "bert.";

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let model = Standard::read(json, BERT)?;
    model.refuse_windows()?;
    for key in ["add_cross_attention", "is_decoder"] {
        json.require(key, "false", |value| value.as_bool() == Some(false))?;
    }
    json.require("position_embedding_type", "absolute", |value| value.as_str() == Some("absolute"))?;
    let types = json.size("type_vocab_size", 2, 1 << 16)?;
    let (hidden, intermediate) = (model.hidden, model.intermediate);
    let block = |layer| {
        let name = format!("{PREFIX}encoder.layer.{layer}");
        let square = |part| linear(format!("{name}.attention.{part}"), [hidden, hidden], true);
        let attention =
            model.attention_from(["self.query", "self.key", "self.value", "output.dense"].map(square), None);
        let mlp = Mlp {
            activation: model.activation,
            limit: None,
            up_offset: 0.0,
            gate: None,
            up: linear(format!("{name}.intermediate.dense"), [intermediate, hidden], true),
            down: linear(format!("{name}.output.dense"), [hidden, intermediate], true),
        };
        let norm = |part| Some(model.norm(format!("{name}.{part}.LayerNorm")));
        Block {
            attention: Branch { after_sum: norm("attention.output"), ..Branch::of(attention) },
            mlp: Branch { after_sum: norm("output"), ..Branch::of(mlp.into()) },
            parallel: false,
        }
    };
    let blocks = (0..model.layers).map(block).collect();
    let embeddings = |part| format!("{PREFIX}embeddings.{part}");
    let norm = model.norm(embeddings("LayerNorm"));
    let mut model = model.build(blocks)?;
    model.embedding.weight = weight(embeddings("word_embeddings.weight"), [model.vocab, hidden]);
    model.embedding.positions =
        Some(weight(embeddings("position_embeddings.weight"), [model.max_positions, hidden]));
    model.embedding.token_types = Some(weight(embeddings("token_type_embeddings.weight"), [types, hidden]));
    model.embedding.norm = Some(norm);
    model.final_norm = None;
    model.head = Head::Pooling(Pooling::default());
    model.aliases = Aliases { prefix: Some(PREFIX), endings: &ENDINGS };
    model.ignored_prefixes = &IGNORED_PREFIXES;
    Ok(model)
}
