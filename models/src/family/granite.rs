//! Granite 3: Llama with four multipliers.
//!
//! Keys and tensors of transformers' `GraniteConfig` and `GraniteForCausalLM`.

use super::{
    rope::ROPE,
    standard::{LLAMA, Standard, layer_name},
};
use crate::{
    block::{Attention, Block},
    config::ModelConfig,
    error::Error,
    json::Json,
};

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    let mut model = Standard::read(json, LLAMA)?;
    let rope = model.rope(&ROPE)?;
    model.refuse_windows()?;
    let bias = json.flag("attention_bias", false)?;
    let mlp_bias = json.flag("mlp_bias", false)?;
    let multipliers = Multipliers::read(json)?;
    let block = |layer| {
        let name = layer_name(layer);
        let attention = model.attention(&format!("{name}.self_attn"), [bias; 2], Some(rope.clone()));
        let attention = Attention { scale: multipliers.attention, ..attention };
        let mut block = model.block(&name, attention, model.mlp(&format!("{name}.mlp"), mlp_bias));
        multipliers.scale(&mut block);
        block
    };
    let blocks = (0..model.layers).map(block).collect();
    Ok(multipliers.finish(model.build(blocks)?))
}

/// Factors of the family. Logits are divided by theirs.
pub(super) struct Multipliers {
    embedding: f64,
    pub(super) attention: f64,
    residual: f64,
    logits: f64,
}

impl Multipliers {
    pub(super) fn read(json: &Json<'_>) -> Result<Self, Error> {
        let read = |key| Ok::<_, Error>(json.positive(key)?.unwrap_or(1.0));
        Ok(Self {
            embedding: read("embedding_multiplier")?,
            attention: read("attention_multiplier")?,
            residual: read("residual_multiplier")?,
            logits: read("logits_scaling")?,
        })
    }

    pub(super) fn scale(&self, block: &mut Block) {
        (block.attention.scale, block.mlp.scale) = (self.residual, self.residual);
    }

    pub(super) fn finish(&self, mut model: ModelConfig) -> ModelConfig {
        model.embedding.scale = self.embedding;
        model.with_logits(|head| head.scale = 1.0 / self.logits)
    }
}
