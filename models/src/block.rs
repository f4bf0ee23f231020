//! A transformer block: attention, then a feed-forward network, each added to the residual stream.

use crate::{
    feed_forward::FeedForward,
    layers::{Linear, Norm, Weight},
    rope::Rope,
};

/// One transformer block: `x += attention(x); x += mlp(x)`, or `x += attention(x) + mlp(x)` if it is parallel.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The attention branch.
    pub attention: Branch<Attention>,
    /// The feed-forward branch.
    pub mlp: Branch<FeedForward>,
    /// Whether both branches read the input of the block.
    pub parallel: bool,
}

/// A branch of a block, with its norms: `x = after_sum(x + scale · after(layer(before(x))))`.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch<T> {
    /// Norm of the layer's input.
    pub before: Option<Norm>,
    /// The layer between the norms.
    pub layer: T,
    /// Norm of the layer's output.
    pub after: Option<Norm>,
    /// Factor of the output.
    pub scale: f64,
    /// Norm of the residual stream after the addition (Vaswani et al., arXiv 1706.03762, 5.4).
    pub after_sum: Option<Norm>,
}

/// Self-attention with grouped query heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Whether a token attends only to itself and earlier tokens, rather than to the whole text.
    pub causal: bool,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key/value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Factor of the scores.
    pub scale: f64,
    /// Soft cap of the scores, which become `cap · tanh(scores / cap)`.
    pub soft_cap: Option<f64>,
    /// Sliding window: the number of positions that a token attends to, its own included.
    pub window: Option<usize>,
    /// Bound that queries, keys and values are clamped to before rope.
    pub clip: Option<f64>,
    /// Attention sinks, `[heads]`: the score of a position that every token attends to and that has no value.
    pub sinks: Option<Weight>,
    /// Rotary position embedding of queries and keys.
    pub rope: Option<Rope>,
    /// Norm of queries, before rope.
    ///
    /// Its weight is `[head_dim]` if heads share it, `[heads, head_dim]` if each head has its own, and `[heads · head_dim]`
    /// if all heads are normalized as one vector.
    pub query_norm: Option<Norm>,
    /// Norm of keys, like `query_norm` with `kv_heads`.
    pub key_norm: Option<Norm>,
    /// Query projection, `hidden → heads · head_dim`.
    pub query: Linear,
    /// Key projection, `hidden → kv_heads · head_dim`.
    pub key: Linear,
    /// Value projection, `hidden → kv_heads · head_dim`.
    pub value: Linear,
    /// Output projection, `heads · head_dim → hidden`.
    pub output: Linear,
}

impl<T> Branch<T> {
    /// Returns a branch with this layer and no norm.
    pub(crate) fn of(layer: T) -> Self {
        Self { before: None, layer, after: None, scale: 1.0, after_sum: None }
    }
}
