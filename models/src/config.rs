//! The description of a decoder-only language model.

use std::collections::{BTreeMap, BTreeSet};

use safetensors::Dtype;

use crate::{Error, FeedForward, Rope, family};

/// A decoder-only transformer: `tokens → embedding → blocks → norm → head → logits`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The registry name of the family it came from: Hugging Face's `model_type`.
    pub family: String,
    /// Rows of the embedding and columns of the logits.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// The longest sequence, in tokens, that is computed as the checkpoint was made for it.
    pub max_positions: usize,
    /// The element type the checkpoint says its weights have.
    pub dtype: Dtype,
    /// Token ids → rows of `[vocab, hidden]`.
    pub embedding: Embedding,
    /// The blocks, first to last.
    pub blocks: Vec<Block>,
    /// The norm before the head.
    pub final_norm: Norm,
    /// What makes logits of the last hidden state.
    pub head: Head,
    /// Ids that end a generation (`eos_token_id`: one or several).
    pub eos: Vec<u32>,
    /// The id that starts a text (`bos_token_id`).
    pub bos: Option<u32>,
    /// What all names of tensors begin with in some checkpoints, and in others nothing.
    pub prefix: Option<&'static str>,
    /// What config.json offers and this description leaves out, in words for people.
    pub notes: Vec<String>,
}

/// A weight of the checkpoint, by its name there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    /// The tensor's name in the checkpoint.
    pub name: String,
    /// Its shape in the checkpoint.
    pub shape: Vec<usize>,
}

/// A table of rows looked up by token id: `weight[token] · scale + positions[position]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// `[vocab, hidden]`.
    pub weight: Weight,
    /// What rows are multiplied by.
    pub scale: f64,
    /// A learned row for every position, `[max_positions, hidden]`.
    pub positions: Option<Weight>,
}

/// The head: `soft_cap(linear(x) · scale)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// `hidden → vocab`, with a weight of its own, which is not there where the head is tied.
    pub linear: Linear,
    /// Whether the embedding's weight is used in place of the head's own.
    pub tied: bool,
    /// What logits are multiplied by.
    pub scale: f64,
    /// Logits become `cap · tanh(logits / cap)`.
    pub soft_cap: Option<f64>,
}

/// One transformer block: `x += attention(x); x += mlp(x)`, or `x += attention(x) + mlp(x)` where it is parallel.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The attention.
    pub attention: Branch<Attention>,
    /// The mlp, or several.
    pub mlp: Branch<FeedForward>,
    /// Whether both branches read the block's input.
    pub parallel: bool,
}

/// What a block adds to the residual stream: `scale · after(layer(before(x)))`.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch<T> {
    /// Norm of the layer's input.
    pub before: Option<Norm>,
    /// What it computes.
    pub layer: T,
    /// Norm of the layer's output.
    pub after: Option<Norm>,
    /// What the output is multiplied by.
    pub scale: f64,
}

/// Causal self-attention with grouped key/value heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub heads: usize,
    /// Key/value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// What scores are multiplied by.
    pub scale: f64,
    /// Scores then become `cap · tanh(scores / cap)`.
    pub soft_cap: Option<f64>,
    /// How many positions a token sees at most, up to its own and with it; all, where there is none.
    pub window: Option<usize>,
    /// What queries, keys and values are in magnitude at most, before rope.
    pub clip: Option<f64>,
    /// A score for each query head, `[heads]`, of a position that every token sees and that has no value.
    pub sinks: Option<Weight>,
    /// Rotary position embedding of queries and keys.
    pub rope: Option<Rope>,
    /// Norm of queries, before rope. Its weight is `[head_dim]` for every head alike, `[heads, head_dim]` for each head
    /// its own, or `[heads · head_dim]` where all heads are one vector.
    pub query_norm: Option<Norm>,
    /// The same of keys, with `kv_heads`.
    pub key_norm: Option<Norm>,
    /// `hidden → heads · head_dim`.
    pub query: Linear,
    /// `hidden → kv_heads · head_dim`.
    pub key: Linear,
    /// `hidden → kv_heads · head_dim`.
    pub value: Linear,
    /// `heads · head_dim → hidden`.
    pub output: Linear,
}

/// A norm over the last dimension, `(x - mean) / sqrt(variance + epsilon) · (offset + weight) + bias`, or without the
/// mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Norm {
    /// Whether it subtracts the mean.
    pub kind: NormKind,
    /// Added to the variance, or to the mean square.
    pub epsilon: f64,
    /// Added to the weight.
    pub offset: f64,
    /// One of `[width]`, or as [`Attention::query_norm`] says; or several, one for each head.
    pub weights: Vec<Weight>,
    /// `[width]`.
    pub bias: Option<Weight>,
}

/// What a norm divides by, and whether it subtracts the mean before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// Root mean square (Zhang and Sennrich, arXiv 1910.07467).
    Rms,
    /// Layer normalisation (Ba et al., arXiv 1607.06450).
    Layer,
}

/// `x · weightᵀ + bias`.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// `[outputs, inputs]`, as checkpoints store it.
    pub weight: Weight,
    /// `[outputs]`.
    pub bias: Option<Weight>,
    /// Which of several matrices, where the weight is a stack of them, `[matrices, outputs, inputs]`, and the bias of rows.
    pub matrix: Option<usize>,
    /// Which of the outputs are this layer's, where several layers share a tensor.
    pub part: Option<Part>,
    /// Whether the weight is stored as `[inputs, outputs]`.
    pub transposed: bool,
}

/// Outputs of a weight whose tensor has those of other layers too: in each of `groups` groups of equal size, `size` from
/// `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Groups of outputs.
    pub groups: usize,
    /// The first output of a group.
    pub first: usize,
    /// How many outputs of a group.
    pub size: usize,
}

/// More parameters than this and the description is a mistake: the largest models known have some 10^12.
const PARAMETERS_MAX: u64 = 1 << 44;

impl ModelConfig {
    /// The description of the checkpoint whose config.json is `text`, in any family's spelling.
    ///
    /// # Errors
    ///
    /// When the text is no config.json, its family is not in [`FAMILIES`](crate::FAMILIES), or it asks for something
    /// that a description cannot express exactly.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let mut model = family::describe(text)?;
        for block in &mut model.blocks {
            let window = &mut block.attention.layer.window;
            *window = window.filter(|&window| window < model.max_positions);
        }
        let parameters = model.parameters();
        if parameters > PARAMETERS_MAX {
            return Err(Error::TooLarge { parameters, limit: PARAMETERS_MAX });
        }
        Ok(model)
    }

    /// The description of the tensors that a checkpoint has, of which `has` knows the names: with the prefix or without,
    /// and whether its head is tied is what its tensors say, whatever config.json does.
    #[must_use]
    pub fn with_tensors(mut self, has: impl Fn(&str) -> bool) -> Self {
        if let Some(prefix) = self.prefix
            && !has(&self.embedding.weight.name)
        {
            for weight in self.weights_mut() {
                if let Some(bare) = weight.name.strip_prefix(prefix) {
                    weight.name = bare.into();
                }
            }
        }
        self.head.tied = !has(&self.head.linear.weight.name);
        self
    }

    /// Every weight of every part, those that share a tensor too.
    fn weights_mut(&mut self) -> Vec<&mut Weight> {
        let Embedding { weight, positions, .. } = &mut self.embedding;
        let mut weights: Vec<_> = std::iter::once(weight).chain(positions).collect();
        for Block { attention, mlp, .. } in &mut self.blocks {
            let Attention { query, key, value, output, query_norm, key_norm, sinks, .. } =
                &mut attention.layer;
            weights.extend(sinks);
            let norms = [&mut attention.before, query_norm, key_norm, &mut attention.after];
            let norms = norms.into_iter().chain([&mut mlp.before, &mut mlp.after]).flatten();
            weights.extend(norms.flat_map(Norm::weights_mut));
            let linears = [query, key, value, output].into_iter().chain(mlp.layer.linears_mut());
            weights.extend(linears.flat_map(Linear::weights_mut));
        }
        weights.extend(self.final_norm.weights_mut());
        weights.extend(self.head.linear.weights_mut());
        weights
    }

    /// The head's product: with the embedding's weight where it is tied.
    #[must_use]
    pub fn head_linear(&self) -> Linear {
        let mut linear = self.head.linear.clone();
        if self.head.tied {
            linear.weight = self.embedding.weight.clone();
        }
        linear
    }

    /// Every weight of the checkpoint, once, in the order of use. A tied head's comes as the embedding's.
    #[must_use]
    pub fn weights(&self) -> Vec<&Weight> {
        let mut weights = vec![&self.embedding.weight];
        weights.extend(&self.embedding.positions);
        for Block { attention, mlp, .. } in &self.blocks {
            let Attention { query, key, value, output, query_norm, key_norm, sinks, .. } = &attention.layer;
            weights.extend(attention.before.iter().flat_map(Norm::all_weights));
            weights.extend([query, key, value].into_iter().flat_map(Linear::weights));
            weights.extend([query_norm, key_norm].into_iter().flatten().flat_map(Norm::all_weights));
            weights.extend(sinks);
            weights.extend(output.weights());
            weights.extend(attention.after.iter().chain(&mlp.before).flat_map(Norm::all_weights));
            weights.extend(mlp.layer.linears().flat_map(Linear::weights));
            weights.extend(mlp.after.iter().flat_map(Norm::all_weights));
        }
        weights.extend(self.final_norm.all_weights());
        let Linear { weight, bias, .. } = &self.head.linear;
        weights.extend((!self.head.tied).then_some(weight));
        weights.extend(bias);
        let mut seen = BTreeSet::new();
        weights.retain(|weight| seen.insert(&weight.name));
        weights
    }

    /// The norms, in the order of use.
    pub fn norms(&self) -> impl Iterator<Item = &Norm> {
        let of_blocks = self.blocks.iter().flat_map(|Block { attention, mlp, .. }| {
            let Attention { query_norm, key_norm, .. } = &attention.layer;
            [&attention.before, query_norm, key_norm, &attention.after, &mlp.before, &mlp.after]
        });
        of_blocks.flatten().chain([&self.final_norm])
    }

    /// The linear layers, in the order of use; of a tied head too, whose weight is then the embedding's.
    pub fn linears(&self) -> impl Iterator<Item = &Linear> {
        let of_blocks = self.blocks.iter().flat_map(|Block { attention, mlp, .. }| {
            let Attention { query, key, value, output, .. } = &attention.layer;
            [query, key, value, output].into_iter().chain(mlp.layer.linears())
        });
        of_blocks.chain([&self.head.linear])
    }

    /// Elements of all weights; `u64::MAX` where that does not fit.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.weights().into_iter().map(Weight::elements).fold(0, u64::saturating_add)
    }

    /// Elements of keys and values that one token leaves in a cache, of the layers of each window, and of those of none;
    /// `u64::MAX` where that does not fit.
    #[must_use]
    pub fn cache_elements_per_token(&self) -> BTreeMap<Option<usize>, u64> {
        let mut elements = BTreeMap::new();
        for Block { attention, .. } in &self.blocks {
            let Attention { kv_heads, head_dim, window, .. } = attention.layer;
            let of_layer = (kv_heads as u64).saturating_mul(head_dim as u64).saturating_mul(2);
            let sum: &mut u64 = elements.entry(window).or_default();
            *sum = sum.saturating_add(of_layer);
        }
        elements
    }
}

impl Weight {
    /// How many elements it has; `u64::MAX` where that does not fit.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product, &size| product.saturating_mul(size as u64))
    }
}

impl<T> Branch<T> {
    /// The layer alone.
    pub(crate) fn of(layer: T) -> Self {
        Self { before: None, layer, after: None, scale: 1.0 }
    }
}

impl Norm {
    /// The shape of its weights, as one.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        match self.weights.as_slice() {
            [] => vec![],
            [only] => only.shape.clone(),
            [first, ..] => [&[self.weights.len()], first.shape.as_slice()].concat(),
        }
    }

    /// The weights, then the bias.
    pub(crate) fn all_weights(&self) -> impl Iterator<Item = &Weight> {
        self.weights.iter().chain(&self.bias)
    }
}

impl Norm {
    fn weights_mut(&mut self) -> impl Iterator<Item = &mut Weight> {
        self.weights.iter_mut().chain(&mut self.bias)
    }
}

impl Linear {
    fn weights_mut(&mut self) -> impl Iterator<Item = &mut Weight> {
        std::iter::once(&mut self.weight).chain(&mut self.bias)
    }

    /// Width of the input.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.weight.shape[usize::from(self.matrix.is_some()) + usize::from(!self.transposed)]
    }

    /// Width of the output.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.part.map_or_else(|| self.weight_outputs(), |part| part.groups * part.size)
    }

    /// Outputs of the tensor, those of other layers included.
    #[must_use]
    pub fn weight_outputs(&self) -> usize {
        self.weight.shape[usize::from(self.matrix.is_some()) + usize::from(self.transposed)]
    }

    /// The weight, then the bias.
    pub(crate) fn weights(&self) -> impl Iterator<Item = &Weight> {
        std::iter::once(&self.weight).chain(&self.bias)
    }
}
