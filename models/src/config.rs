//! The description of a decoder-only language model.

use safetensors::Dtype;

use crate::{Error, Rope, family};

/// A decoder-only transformer: `tokens → embedding → blocks → norm → head → logits`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The registry name of the family it came from: Hugging Face's `model_type`.
    pub family: String,
    /// Rows of the embedding and columns of the logits.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// The longest sequence, in tokens, that the checkpoint was made for.
    pub max_positions: usize,
    /// The element type the checkpoint says its weights have.
    pub dtype: Dtype,
    /// Token ids → rows of `[vocab, hidden]`.
    pub embedding: Embedding,
    /// The blocks, first to last.
    pub blocks: Vec<Block>,
    /// The norm before the head.
    pub final_norm: Norm,
    /// The head, `hidden → vocab`. A tied head names the embedding's weight.
    pub head: Linear,
    /// Ids that end a generation (`eos_token_id`: one or several).
    pub eos: Vec<u32>,
    /// The id that starts a text (`bos_token_id`).
    pub bos: Option<u32>,
}

/// A weight of the checkpoint, by its name there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    /// The tensor's name in the checkpoint.
    pub name: String,
    /// Its shape in the checkpoint.
    pub shape: Vec<usize>,
}

/// A table of rows looked up by token id.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// `[vocab, hidden]`.
    pub weight: Weight,
}

/// One transformer block: `x += attention(norm(x)); x += mlp(norm(x))`.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Norm before the attention.
    pub attention_norm: Norm,
    /// The attention.
    pub attention: Attention,
    /// Norm before the mlp.
    pub mlp_norm: Norm,
    /// The mlp.
    pub mlp: Mlp,
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
    /// What scores are multiplied by before the softmax.
    pub scale: f64,
    /// Rotary position embedding of queries and keys.
    pub rope: Rope,
    /// `hidden → heads · head_dim`.
    pub query: Linear,
    /// `hidden → kv_heads · head_dim`.
    pub key: Linear,
    /// `hidden → kv_heads · head_dim`.
    pub value: Linear,
    /// `heads · head_dim → hidden`.
    pub output: Linear,
}

/// A gated mlp: `down(activation(gate(x)) · up(x))`.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    /// The activation of the gate.
    pub activation: Activation,
    /// `hidden → intermediate`.
    pub gate: Linear,
    /// `hidden → intermediate`.
    pub up: Linear,
    /// `intermediate → hidden`.
    pub down: Linear,
}

/// An elementwise activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
}

/// Root-mean-square norm: `x / sqrt(mean(x²) + epsilon) · weight`.
#[derive(Debug, Clone, PartialEq)]
pub struct Norm {
    /// Added to the mean square.
    pub epsilon: f64,
    /// `[width]`.
    pub weight: Weight,
}

/// `x · weightᵀ + bias`.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// `[outputs, inputs]`, as checkpoints store it.
    pub weight: Weight,
    /// `[outputs]`.
    pub bias: Option<Weight>,
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
        let model = family::describe(text)?;
        let parameters = model.parameters();
        if parameters > PARAMETERS_MAX {
            return Err(Error::TooLarge { parameters, limit: PARAMETERS_MAX });
        }
        Ok(model)
    }

    /// Whether the head shares the embedding's weight.
    #[must_use]
    pub fn tied(&self) -> bool {
        self.head.weight.name == self.embedding.weight.name
    }

    /// Every weight of the checkpoint, once, in the order of use. A tied head's comes as the embedding's.
    #[must_use]
    pub fn weights(&self) -> Vec<&Weight> {
        let mut weights = vec![&self.embedding.weight];
        for Block { attention_norm, attention, mlp_norm, mlp } in &self.blocks {
            weights.push(&attention_norm.weight);
            for linear in [&attention.query, &attention.key, &attention.value, &attention.output] {
                weights.extend(linear.weights());
            }
            weights.push(&mlp_norm.weight);
            for linear in [&mlp.gate, &mlp.up, &mlp.down] {
                weights.extend(linear.weights());
            }
        }
        weights.push(&self.final_norm.weight);
        weights.extend(self.head.weights().filter(|weight| weight.name != self.embedding.weight.name));
        weights
    }

    /// Elements of all weights; `u64::MAX` where that does not fit.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.weights().into_iter().map(Weight::elements).fold(0, u64::saturating_add)
    }

    /// Elements of keys and values that one token leaves in a cache; `u64::MAX` where that does not fit.
    #[must_use]
    pub fn cache_elements_per_token(&self) -> u64 {
        let elements = self.blocks.iter().map(|Block { attention, .. }| {
            (attention.kv_heads as u64).saturating_mul(attention.head_dim as u64).saturating_mul(2)
        });
        elements.fold(0, u64::saturating_add)
    }
}

impl Weight {
    /// How many elements it has; `u64::MAX` where that does not fit.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product, &size| product.saturating_mul(size as u64))
    }
}

impl Linear {
    /// Width of the input.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.weight.shape[1]
    }

    /// Width of the output.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.weight.shape[0]
    }

    /// The weight, then the bias.
    pub(crate) fn weights(&self) -> impl Iterator<Item = &Weight> {
        std::iter::once(&self.weight).chain(&self.bias)
    }
}
