//! The description of a transformer over text: a decoder, which continues one, or an encoder, which gives a vector.

use std::collections::{BTreeMap, BTreeSet};

use safetensors::Dtype;

use crate::{Error, FeedForward, Head, Logits, Rope, family};

/// A transformer over text: `tokens → embedding → blocks → norm → head`.
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
    pub final_norm: Option<Norm>,
    /// What is made of the last hidden states.
    pub head: Head,
    /// Ids that end a generation (`eos_token_id`: one or several).
    pub eos: Vec<u32>,
    /// The id that starts a text (`bos_token_id`).
    pub bos: Option<u32>,
    /// What else checkpoints of it call its tensors.
    pub spellings: Spellings,
    /// How names begin of tensors that its checkpoints have and it has no use for.
    pub leftovers: &'static [&'static str],
    /// What config.json offers and this description leaves out, in words for people.
    pub notes: Vec<String>,
}

/// Other names of tensors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spellings {
    /// What all names begin with in some checkpoints, and in others nothing.
    pub prefix: Option<&'static str>,
    /// How names end, and how the same ones do in other checkpoints.
    pub endings: &'static [(&'static str, &'static str)],
}

/// A weight of the checkpoint, by its name there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    /// The tensor's name in the checkpoint.
    pub name: String,
    /// Its shape in the checkpoint.
    pub shape: Vec<usize>,
}

/// A table of rows looked up by token id: `norm(weight[token] · scale + positions[position] + token_types[0])`.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// `[vocab, hidden]`.
    pub weight: Weight,
    /// What rows are multiplied by.
    pub scale: f64,
    /// A learned row for every position, `[max_positions, hidden]`.
    pub positions: Option<Weight>,
    /// A learned row for every type that a token can have, `[types, hidden]`. All tokens of a text have the first one.
    pub token_types: Option<Weight>,
    /// Norm of the sum.
    pub norm: Option<Norm>,
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

/// What a block does to the residual stream: `x = after_sum(x + scale · after(layer(before(x))))`.
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
    /// Norm of the residual stream with the output (Vaswani et al., arXiv 1706.03762, 5.4).
    pub after_sum: Option<Norm>,
}

/// Self-attention with grouped key/value heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Whether a token sees those up to its own position alone, or the whole text.
    pub causal: bool,
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

    /// The description of the tensors that a checkpoint has, of which `has` knows the names: in whatever spelling, and
    /// whether its head is tied is what its tensors say, whatever config.json does.
    #[must_use]
    pub fn with_tensors(mut self, has: impl Fn(&str) -> bool) -> Self {
        let spellings = self.spellings;
        for weight in self.weights_mut().into_iter().filter(|weight| !has(&weight.name)) {
            if let Some(other) = spellings.others(&weight.name).into_iter().find(|name| has(name)) {
                weight.name = other;
            }
        }
        self.with_logits(|head| head.tied = !has(&head.linear.weight.name))
    }

    /// The description with this `change` of its head of logits.
    pub(crate) fn with_logits(mut self, change: impl FnOnce(&mut Logits)) -> Self {
        if let Head::Logits(head) = &mut self.head {
            change(head);
        }
        self
    }

    /// Every weight of every part, those that share a tensor too.
    fn weights_mut(&mut self) -> Vec<&mut Weight> {
        let Embedding { weight, positions, token_types, norm, scale: _ } = &mut self.embedding;
        let mut weights: Vec<_> = std::iter::once(weight).chain(positions).chain(token_types).collect();
        weights.extend(norm.iter_mut().flat_map(Norm::weights_mut));
        for Block { attention, mlp, .. } in &mut self.blocks {
            let Attention { query, key, value, output, query_norm, key_norm, sinks, .. } =
                &mut attention.layer;
            weights.extend(sinks);
            let of_attention =
                [&mut attention.before, query_norm, key_norm, &mut attention.after, &mut attention.after_sum];
            let of_mlp = [&mut mlp.before, &mut mlp.after, &mut mlp.after_sum];
            let norms = of_attention.into_iter().chain(of_mlp).flatten();
            weights.extend(norms.flat_map(Norm::weights_mut));
            let linears = [query, key, value, output].into_iter().chain(mlp.layer.linears_mut());
            weights.extend(linears.flat_map(Linear::weights_mut));
        }
        weights.extend(self.final_norm.iter_mut().flat_map(Norm::weights_mut));
        if let Head::Logits(head) = &mut self.head {
            weights.extend(head.linear.weights_mut());
        }
        weights
    }

    /// Every weight of the checkpoint, once, in the order of use. A tied head's comes as the embedding's.
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
            let between = attention.after.iter().chain(&attention.after_sum).chain(&mlp.before);
            weights.extend(between.flat_map(Norm::all_weights));
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

    /// The norms, in the order of use.
    pub fn norms(&self) -> impl Iterator<Item = &Norm> {
        let of_blocks = self.blocks.iter().flat_map(|Block { attention, mlp, .. }| {
            let Attention { query_norm, key_norm, .. } = &attention.layer;
            let of_attention =
                [&attention.before, query_norm, key_norm, &attention.after, &attention.after_sum];
            of_attention.into_iter().chain([&mlp.before, &mlp.after, &mlp.after_sum])
        });
        let norms = std::iter::once(&self.embedding.norm).chain(of_blocks).chain([&self.final_norm]);
        norms.flatten()
    }

    /// The linear layers, in the order of use; of a tied head too, whose weight is then the embedding's.
    pub fn linears(&self) -> impl Iterator<Item = &Linear> {
        let of_blocks = self.blocks.iter().flat_map(|Block { attention, mlp, .. }| {
            let Attention { query, key, value, output, .. } = &attention.layer;
            [query, key, value, output].into_iter().chain(mlp.layer.linears())
        });
        of_blocks.chain(match &self.head {
            Head::Logits(head) => Some(&head.linear),
            Head::Pooling(_) => None,
        })
    }

    /// Elements of all weights; `u64::MAX` where that does not fit.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.weights().into_iter().map(Weight::elements).fold(0, u64::saturating_add)
    }

    /// Elements of keys and values that one token leaves in a cache, of the layers of each window, and of those of none;
    /// `u64::MAX` where that does not fit. An encoder has no cache.
    #[must_use]
    pub fn cache_elements_per_token(&self) -> BTreeMap<Option<usize>, u64> {
        let mut elements = BTreeMap::new();
        if let Head::Pooling(_) = self.head {
            return elements;
        }
        for Block { attention, .. } in &self.blocks {
            let Attention { kv_heads, head_dim, window, .. } = attention.layer;
            let of_layer = (kv_heads as u64).saturating_mul(head_dim as u64).saturating_mul(2);
            let sum: &mut u64 = elements.entry(window).or_default();
            *sum = sum.saturating_add(of_layer);
        }
        elements
    }
}

impl Spellings {
    /// What else the tensor `name` is called.
    #[must_use]
    pub fn others(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        let swapped = |(one, other): &(&str, &str)| {
            let swap = |from, to| name.strip_suffix(from).map(|start| format!("{start}{to}"));
            swap(*one, *other).or_else(|| swap(*other, *one))
        };
        names.extend(self.endings.iter().find_map(swapped));
        if let Some(prefix) = self.prefix {
            let with_or_without = |name: &String| {
                name.strip_prefix(prefix).map_or_else(|| format!("{prefix}{name}"), str::to_owned)
            };
            let others: Vec<_> = names.iter().map(with_or_without).collect();
            names.extend(others);
        }
        names.split_off(1)
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
        Self { before: None, layer, after: None, scale: 1.0, after_sum: None }
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
