//! The description of a transformer over text: a decoder, which generates text, or an encoder, which embeds it.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use safetensors::Dtype;

use crate::{
    aliases::Aliases,
    block::{Attention, Block},
    head::{Head, Logits},
    layers::{Embedding, Linear, Norm, Weight},
    storage::Scheme,
};

/// A transformer over text: `tokens → embedding → blocks → norm → head`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Name of the family: Hugging Face's `model_type`.
    pub family: String,
    /// Size of the vocabulary: rows of the embedding and columns of the logits.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Length of the longest sequence, in tokens, that the description computes exactly.
    pub max_positions: usize,
    /// Element type of the weights, according to config.json.
    pub dtype: Dtype,
    /// Token ids → rows of `[vocab, hidden]`.
    pub embedding: Embedding,
    /// The blocks, first to last.
    pub blocks: Vec<Block>,
    /// Norm before the head.
    pub final_norm: Option<Norm>,
    /// Logits for the next token, or an embedding of the text.
    pub head: Head,
    /// Token ids that end a generation: `eos_token_id`, one or several.
    pub eos: Vec<u32>,
    /// Token id that starts a text: `bos_token_id`.
    pub bos: Option<u32>,
    /// Other names of the tensors in checkpoints of the family.
    pub aliases: Aliases,
    /// How the checkpoint stores quantized weights, if it has some.
    pub scheme: Option<Scheme>,
    /// Name prefixes of checkpoint tensors that the model ignores.
    pub ignored_prefixes: &'static [&'static str],
    /// What config.json offers and the description leaves out, as text for the user.
    pub notes: Vec<String>,
}

impl ModelConfig {
    /// Adapts the description to the tensors of a checkpoint, where `has` returns whether it has one of that name.
    ///
    /// Weights get the names that the checkpoint uses. The head is tied if the checkpoint has no weight for it, whatever
    /// config.json says. A tied weight may have the head's name alone.
    #[must_use]
    pub fn with_tensors(mut self, has: impl Fn(&str) -> bool) -> Self {
        let aliases = self.aliases;
        for weight in self.weights_mut().into_iter().filter(|weight| !has(&weight.name)) {
            if let Some(other) = aliases.of(&weight.name).into_iter().find(|name| has(name)) {
                weight.name = other;
            }
        }
        if let Head::Logits(head) = &mut self.head {
            let (embedding, own) = (&mut self.embedding.weight.name, &head.linear.weight.name);
            if head.tied && has(own) && !has(embedding) {
                embedding.clone_from(own);
            } else {
                head.tied = !has(own);
            }
        }
        self
    }

    /// Applies `change` to the head if it computes logits.
    pub(crate) fn with_logits(mut self, change: impl FnOnce(&mut Logits)) -> Self {
        if let Head::Logits(head) = &mut self.head {
            change(head);
        }
        self
    }

    /// Returns every weight of every layer. Weights that share a tensor are repeated.
    fn weights_mut(&mut self) -> Vec<&mut Weight> {
        let Embedding { weight, positions, token_types, norm, scale: _ } = &mut self.embedding;
        let mut weights: Vec<_> = iter::once(weight).chain(positions).chain(token_types).collect();
        weights.extend(norm.iter_mut().flat_map(Norm::all_weights_mut));
        for Block { attention, mlp, .. } in &mut self.blocks {
            let Attention { query, key, value, output, query_norm, key_norm, sinks, .. } =
                &mut attention.layer;
            weights.extend(sinks);
            let attention_norms =
                [&mut attention.before, query_norm, key_norm, &mut attention.after, &mut attention.after_sum];
            let mlp_norms = [&mut mlp.before, &mut mlp.after, &mut mlp.after_sum];
            let norms = attention_norms.into_iter().chain(mlp_norms).flatten();
            weights.extend(norms.flat_map(Norm::all_weights_mut));
            let linears = [query, key, value, output].into_iter().chain(mlp.layer.linears_mut());
            weights.extend(linears.flat_map(Linear::weights_mut));
        }
        weights.extend(self.final_norm.iter_mut().flat_map(Norm::all_weights_mut));
        if let Head::Logits(head) = &mut self.head {
            weights.extend(head.linear.weights_mut());
        }
        weights
    }

    /// Returns every weight of the checkpoint once, in the order of use. A tied head has none of its own.
    #[must_use]
    pub fn weights(&self) -> Vec<&Weight> {
        let Embedding { weight, positions, token_types, norm, scale: _ } = &self.embedding;
        let mut weights = vec![weight];
        weights.extend(positions.iter().chain(token_types));
        weights.extend(norm.iter().flat_map(Norm::all_weights));
        for Block { attention, mlp, .. } in &self.blocks {
            let Attention { query, key, value, output, query_norm, key_norm, sinks, .. } = &attention.layer;
            weights.extend(attention.before.iter().flat_map(Norm::all_weights));
            weights.extend([query, key, value].into_iter().flat_map(Linear::weights));
            weights.extend([query_norm, key_norm].into_iter().flatten().flat_map(Norm::all_weights));
            weights.extend(sinks);
            weights.extend(output.weights());
            let middle_norms = attention.after.iter().chain(&attention.after_sum).chain(&mlp.before);
            weights.extend(middle_norms.flat_map(Norm::all_weights));
            weights.extend(mlp.layer.linears().flat_map(Linear::weights));
            weights.extend(mlp.after.iter().chain(&mlp.after_sum).flat_map(Norm::all_weights));
        }
        weights.extend(self.final_norm.iter().flat_map(Norm::all_weights));
        if let Head::Logits(head) = &self.head {
            weights.extend((!head.tied).then_some(&head.linear.weight));
            weights.extend(&head.linear.bias);
        }
        let mut seen = BTreeSet::new();
        weights.retain(|weight| seen.insert(&weight.name));
        weights
    }

    /// Returns the norms to change them.
    pub(crate) fn norms_mut(&mut self) -> impl Iterator<Item = &mut Norm> {
        let block_norms = self.blocks.iter_mut().flat_map(|Block { attention, mlp, .. }| {
            let Attention { query_norm, key_norm, .. } = &mut attention.layer;
            let attention_norms =
                [&mut attention.before, query_norm, key_norm, &mut attention.after, &mut attention.after_sum];
            attention_norms.into_iter().chain([&mut mlp.before, &mut mlp.after, &mut mlp.after_sum])
        });
        let norms = iter::once(&mut self.embedding.norm).chain(block_norms).chain([&mut self.final_norm]);
        norms.flatten()
    }

    /// Returns the norms in the order of use.
    pub fn norms(&self) -> impl Iterator<Item = &Norm> {
        let block_norms = self.blocks.iter().flat_map(|Block { attention, mlp, .. }| {
            let Attention { query_norm, key_norm, .. } = &attention.layer;
            let attention_norms =
                [&attention.before, query_norm, key_norm, &attention.after, &attention.after_sum];
            attention_norms.into_iter().chain([&mlp.before, &mlp.after, &mlp.after_sum])
        });
        let norms = iter::once(&self.embedding.norm).chain(block_norms).chain([&self.final_norm]);
        norms.flatten()
    }

    /// Returns the linear layers in the order of use, the head included even if it is tied.
    pub fn linears(&self) -> impl Iterator<Item = &Linear> {
        let block_linears = self.blocks.iter().flat_map(|Block { attention, mlp, .. }| {
            let Attention { query, key, value, output, .. } = &attention.layer;
            [query, key, value, output].into_iter().chain(mlp.layer.linears())
        });
        block_linears.chain(match &self.head {
            Head::Logits(head) => Some(&head.linear),
            Head::Pooling(_) => None,
        })
    }

    /// Returns the number of elements of all weights, or `u64::MAX` on overflow.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.weights().into_iter().map(Weight::elements).fold(0, u64::saturating_add)
    }

    /// Returns how many elements one token adds to the key/value cache, by window of the layers; `u64::MAX` on overflow.
    ///
    /// An encoder has no cache.
    #[must_use]
    pub fn cache_elements_per_token(&self) -> BTreeMap<Option<usize>, u64> {
        let mut elements = BTreeMap::new();
        if let Head::Pooling(_) = self.head {
            return elements;
        }
        for Block { attention, .. } in &self.blocks {
            let Attention { kv_heads, head_dim, window, .. } = attention.layer;
            let in_layer = (kv_heads as u64).saturating_mul(head_dim as u64).saturating_mul(2);
            let sum: &mut u64 = elements.entry(window).or_default();
            *sum = sum.saturating_add(in_layer);
        }
        elements
    }
}
