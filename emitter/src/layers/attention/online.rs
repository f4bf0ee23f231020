//! Attention as generated code.
//!
//! It attends to blocks of the cache with a running maximum and sum: the online softmax of Milakov and Gimelshein 2018, as
//! in FlashAttention. So no score matrix is larger than one block. A decode step has a single block.

use mlxcel_models::Attention;
use safetensors::Dtype;

use super::sequence::{Sequence, Span};
use crate::{
    graph::{Graph, HostIndex, Tensor},
    layers::{
        builder::Builder,
        cache::{KeyOrValue, LayerCache},
    },
    ops::{DotDimensions, Reduction},
};

/// The rules for which keys a token sees.
#[derive(Clone, Copy)]
struct Mask {
    /// The position of each token, `[batch, tokens]`.
    positions: Tensor,
    /// In a ring buffer, the last position that was written, `[batch]`, and the number of slots.
    ring: Option<(Tensor, usize)>,
    /// If attention is not causal, the number of real tokens in each row, `[batch]`.
    lengths: Option<Tensor>,
}

impl Mask {
    fn new(g: &mut Graph, cache: &LayerCache<'_>, sequence: Sequence, lengths: Option<Tensor>) -> Self {
        let positions = sequence.positions;
        let ring = cache.ring_slots().map(|slots| {
            let shape = g.shape(positions).to_vec();
            let tokens = shape.get(1).copied().unwrap_or(1);
            let last = g.slice_dimension(positions, 1, tokens.saturating_sub(1), tokens);
            let batch = shape.get(..1).unwrap_or_default();
            (g.reshape(last, batch), slots)
        });
        Self { positions, ring, lengths }
    }

    /// Returns the positions of the keys in the slots from `first`, along the last dimension of `shape`, `[batch, …, slots]`.
    /// Empty slots have negative positions.
    fn key_positions(&self, g: &mut Graph, first: Tensor, shape: &[usize]) -> Tensor {
        let last = shape.len().saturating_sub(1);
        let index = g.iota(Dtype::I32, shape.get(last..).unwrap_or_default(), 0);
        let first = g.broadcast_like(first, index);
        let slot = g.add(index, first);
        let slot = g.broadcast_in_dim(slot, shape, &[last]);
        let Some((written, slots)) = self.ring else { return slot };
        // A slot holds the last written position that maps to it.
        let written = g.broadcast_in_dim(written, shape, &[0]);
        #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
        let slots = g.full(slots as f64, Dtype::I32, shape);
        let ahead = g.add(written, slots);
        let distance = g.subtract(ahead, slot);
        let distance = g.remainder(distance, slots);
        g.subtract(written, distance)
    }
}

/// The running state of an online softmax.
#[derive(Clone, Copy)]
struct SoftmaxState {
    /// The largest score so far, `[batch, kv_heads, group, tokens]`.
    max: Tensor,
    /// The sum of `exp(score - max)`, in the shape of `max`.
    sum: Tensor,
    /// The sum of `exp(score - max) · value`, in the dimensions of `max` and `head_dim`.
    weighted: Tensor,
}

/// Computes softmax attention of `query`, `[batch, kv_heads, group, tokens, head_dim]`, to the sequence's span of the cache:
/// `f32`, in the shape of `query`.
pub(super) fn attend(
    b: &mut Builder<'_>,
    layer: &Attention,
    query: Tensor,
    cache: &LayerCache<'_>,
    sequence: Sequence,
) -> Tensor {
    let &[batch, _, _, tokens, _] = b.graph.shape(query) else {
        return query;
    };
    let lengths = (!layer.causal).then(|| b.lengths(batch, tokens));
    let g = &mut b.graph;
    let mask = Mask::new(g, cache, sequence, lengths);
    let mut total = match (sequence.span, cache.ring_slots()) {
        (Span::Prefix(size), ring) => {
            let first = g.scalar(0.0, Dtype::I32);
            let size = ring.unwrap_or(size);
            let cached = KeyOrValue::BOTH.map(|which| cache.prefix(g, which, size));
            attend_block(g, layer, query, cached, mask, first)
        }
        (Span::Blocks { end, size }, None) => attend_blocks(g, layer, query, cache, mask, (end, size)),
        (Span::Blocks { size, .. }, Some(slots)) => {
            let end = g.host_number(slots);
            attend_blocks(g, layer, query, cache, mask, (end, size))
        }
    };
    if let Some(sinks) = &layer.sinks {
        let scores = b.weight_f32(sinks);
        total = with_sinks(&mut b.graph, total, scores);
    }
    let g = &mut b.graph;
    let shape = g.shape(total.weighted).to_vec();
    let sum = g.broadcast_in_dim(total.sum, &shape, &[0, 1, 2, 3]);
    g.divide(total.weighted, sum)
}

/// Adds the attention sinks: one score for each head, without a value.
fn with_sinks(g: &mut Graph, total: SoftmaxState, scores: Tensor) -> SoftmaxState {
    let rows = g.shape(total.max).to_vec();
    let heads = g.reshape(scores, rows.get(1..3).unwrap_or_default());
    let max = g.broadcast_in_dim(heads, &rows, &[1, 2]);
    let shape = g.shape(total.weighted).to_vec();
    let weighted = g.full(0.0, Dtype::F32, &shape);
    let sum = g.full(1.0, Dtype::F32, &rows);
    merge(g, total, SoftmaxState { max, sum, weighted })
}

/// Attends to blocks of `size` positions, counted on the host, up to `end`.
fn attend_blocks(
    g: &mut Graph,
    layer: &Attention,
    query: Tensor,
    cache: &LayerCache<'_>,
    mask: Mask,
    (end, size): (HostIndex, usize),
) -> SoftmaxState {
    let shape = g.shape(query).to_vec();
    let rows = shape[..shape.len().saturating_sub(1)].to_vec();
    // The least finite number: with a window a token may see nothing of the first blocks, and -inf - -inf is NaN.
    let max = g.full(f64::from(f32::MIN), Dtype::F32, &rows);
    let sum = g.full(0.0, Dtype::F32, &rows);
    let weighted = g.full(0.0, Dtype::F32, &shape);
    let state = g.for_loop(end, size, &[max, sum, weighted], |g, offset, state| {
        let offset = g.host_scalar(offset);
        let cached = KeyOrValue::BOTH.map(|which| cache.block(g, which, offset, size));
        let block = attend_block(g, layer, query, cached, mask, offset);
        let merged = merge(g, SoftmaxState { max: state[0], sum: state[1], weighted: state[2] }, block);
        vec![merged.max, merged.sum, merged.weighted]
    });
    SoftmaxState { max: state[0], sum: state[1], weighted: state[2] }
}

/// Attends to the keys and values in the slots from `first`, `[batch, kv_heads, size, head_dim]`.
fn attend_block(
    g: &mut Graph,
    layer: &Attention,
    query: Tensor,
    cached: [Tensor; 2],
    mask: Mask,
    first: Tensor,
) -> SoftmaxState {
    let operand = g.dtype(query);
    let [keys, values] = cached.map(|cached| g.convert(cached, operand));
    let scores =
        DotDimensions { lhs_batch: &[0, 1], rhs_batch: &[0, 1], lhs_contract: &[4], rhs_contract: &[3] };
    let scores = g.dot_general(query, keys, &scores, Dtype::F32);
    let scores = layer.soft_cap.map_or(scores, |cap| g.soft_cap(scores, cap));
    let shape = g.shape(scores).to_vec();
    let visible = visible(g, layer.window, mask, first, &shape);
    let hidden = g.full(f64::NEG_INFINITY, Dtype::F32, &shape);
    let scores = g.select(visible, scores, hidden);
    let max = g.reduce(scores, Reduction::Max, &[4]);
    let max_all = g.broadcast_in_dim(max, &shape, &[0, 1, 2, 3]);
    let shifted = g.subtract(scores, max_all);
    let exp = g.exponential(shifted);
    // If a token sees nothing of the block, the maximum is -inf, and -inf - -inf is NaN. Such terms become zero.
    let zero = g.full(0.0, Dtype::F32, &shape);
    let exp = g.select(visible, exp, zero);
    let exp = g.convert(exp, operand);
    // The sum is a product because a reduction is fused with the exponentials, whose rows exceed IREE's stack limit.
    let ones = g.full(1.0, operand, shape.get(4..).unwrap_or_default());
    let sum = DotDimensions { lhs_contract: &[4], rhs_contract: &[0], ..DotDimensions::default() };
    let sum = g.dot_general(exp, ones, &sum, Dtype::F32);
    let weighted =
        DotDimensions { lhs_batch: &[0, 1], rhs_batch: &[0, 1], lhs_contract: &[4], rhs_contract: &[2] };
    let weighted = g.dot_general(exp, values, &weighted, Dtype::F32);
    SoftmaxState { max, sum, weighted }
}

/// Returns whether each token (dimension 3) sees each key (dimension 4). A causal token sees keys up to its own position,
/// inside the window. A token that is not causal sees every real one.
fn visible(g: &mut Graph, window: Option<usize>, mask: Mask, first: Tensor, shape: &[usize]) -> Tensor {
    let keys = mask.key_positions(g, first, shape);
    if let Some(lengths) = mask.lengths {
        let lengths = g.broadcast_in_dim(lengths, shape, &[0]);
        return g.lt(keys, lengths);
    }
    let positions = g.broadcast_in_dim(mask.positions, shape, &[0, 3]);
    let mut visible = g.le(keys, positions);
    let Some(window) = window else { return visible };
    if mask.ring.is_some() {
        let first = g.full(0.0, Dtype::I32, shape);
        let is_written = g.ge(keys, first);
        visible = g.and(visible, is_written);
    }
    let distance = g.subtract(positions, keys);
    #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
    let window = g.full(window as f64, Dtype::I32, shape);
    let near = g.lt(distance, window);
    g.and(visible, near)
}

/// Merges the states of two disjoint blocks.
fn merge(g: &mut Graph, a: SoftmaxState, b: SoftmaxState) -> SoftmaxState {
    let max = g.maximum(a.max, b.max);
    let factor = |g: &mut Graph, part: Tensor| {
        let shifted = g.subtract(part, max);
        g.exponential(shifted)
    };
    let (left, right) = (factor(g, a.max), factor(g, b.max));
    let scaled = |g: &mut Graph, x: Tensor, factor: Tensor| {
        let shape = g.shape(x).to_vec();
        let factor = g.broadcast_in_dim(factor, &shape, &[0, 1, 2, 3]);
        g.multiply(x, factor)
    };
    let (x, y) = (g.multiply(a.sum, left), g.multiply(b.sum, right));
    let sum = g.add(x, y);
    let (x, y) = (scaled(g, a.weighted, left), scaled(g, b.weighted, right));
    let weighted = g.add(x, y);
    SoftmaxState { max, sum, weighted }
}
