//! Heads: logits for the next token, or the embedding of a text.

use std::fmt;

use crate::layers::{Embedding, Linear};

/// The head of a model, which reads the last hidden states.
#[derive(Debug, Clone, PartialEq)]
pub enum Head {
    /// Logits for the next token.
    Logits(Box<Logits>),
    /// Pooling of the hidden states into one embedding of the text.
    Pooling(Pooling),
}

/// A head that computes logits: `soft_cap(linear(x) · scale)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    /// `hidden → vocab`. Its weight exists only if the head is not tied.
    pub linear: Linear,
    /// Whether the head uses the weight of the embedding.
    pub tied: bool,
    /// Factor of the logits.
    pub scale: f64,
    /// Soft cap of the logits, which become `cap · tanh(logits / cap)`.
    pub soft_cap: Option<f64>,
}

/// A pooling of hidden states into the embedding of a text (Reimers and Gurevych, arXiv 1908.10084).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooling {
    /// Kind of the pooling.
    pub kind: PoolingKind,
    /// Whether the embedding is divided by its Euclidean length.
    pub normalized: bool,
}

/// The kind of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolingKind {
    /// Mean of the hidden states of all tokens.
    Mean,
    /// Hidden state of the first token, BERT's `[CLS]`.
    Cls,
}

impl Logits {
    /// Returns the linear layer with the weight it uses, which is that of the embedding if the head is tied.
    #[must_use]
    pub fn effective_linear(&self, embedding: &Embedding) -> Linear {
        let mut linear = self.linear.clone();
        if self.tied {
            linear.weight = embedding.weight.clone();
        }
        linear
    }
}

impl Default for Pooling {
    /// Returns the normalized mean, which most checkpoints use that do not specify a pooling.
    fn default() -> Self {
        Self { kind: PoolingKind::Mean, normalized: true }
    }
}

impl fmt::Display for PoolingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mean => "mean",
            Self::Cls => "cls",
        })
    }
}
