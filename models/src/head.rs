//! What a model makes of its last hidden states: logits for the next token, or one vector of a text.

use std::fmt;

use crate::{Embedding, Linear};

/// What is made of the last hidden states.
#[derive(Debug, Clone, PartialEq)]
pub enum Head {
    /// A score for every token that may come next.
    Logits(Box<Logits>),
    /// One vector of a text.
    Pooling(Pooling),
}

/// `soft_cap(linear(x) · scale)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    /// `hidden → vocab`, with a weight of its own, which is not there where the head is tied.
    pub linear: Linear,
    /// Whether the embedding's weight is used in place of the head's own.
    pub tied: bool,
    /// What logits are multiplied by.
    pub scale: f64,
    /// Logits become `cap · tanh(logits / cap)`.
    pub soft_cap: Option<f64>,
}

/// One vector of a text, as wide as hidden states: its embedding (Reimers and Gurevych, arXiv 1908.10084).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooling {
    /// What it is made of.
    pub kind: PoolingKind,
    /// Whether it is divided by its Euclidean length.
    pub normalised: bool,
}

/// What an embedding is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolingKind {
    /// The mean of all tokens' hidden states.
    Mean,
    /// The first token's, BERT's `[CLS]`.
    Cls,
}

impl Logits {
    /// The product: with the embedding's weight where the head is tied.
    #[must_use]
    pub fn product(&self, embedding: &Embedding) -> Linear {
        let mut linear = self.linear.clone();
        if self.tied {
            linear.weight = embedding.weight.clone();
        }
        linear
    }
}

impl Default for Pooling {
    /// The normalised mean, which most checkpoints have that say nothing of it.
    fn default() -> Self {
        Self { kind: PoolingKind::Mean, normalised: true }
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
