//! Attention over the cache.
//!
//! There is one attention. It attends to blocks of the cache with a running maximum and sum (the online softmax of
//! Milakov and Gimelshein 2018, as FlashAttention uses it), so that no score matrix is larger than one block. A decode
//! step is the case of one block, the bucket. Where a kernel computes it, it does the same in one pass over the cache.

mod kernel;

use mlxcel_models::{Attention, Norm};
use safetensors::Dtype;

use super::{
    Builder,
    cache::{Half, LayerCache},
    linear::{linear, linears},
    norm::norm,
    rope,
    rope::Rotation,
};
use crate::{DotDimensions, Graph, HostIndex, Reduction, Tensor};

/// Where a call's tokens are in their sequences.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    /// The position of each row's first token, `[batch]`.
    pub(crate) start: Tensor,
    /// The position of each token, `[batch, tokens]`.
    pub(crate) positions: Tensor,
    /// What part of the cache can hold tokens that these attend to.
    pub(crate) span: Span,
}

/// A part of the cache, from its start.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Span {
    /// This many positions, known when compiling.
    Prefix(usize),
    /// Blocks of `size` positions up to `end`.
    Blocks {
        /// One past the last position of the call.
        end: HostIndex,
        /// Positions in a block.
        size: usize,
    },
}

/// Where the tokens of a call are, and the keys of the cache.
#[derive(Clone, Copy)]
struct Keys {
    /// The position of each token, `[batch, tokens]`.
    positions: Tensor,
    /// Where positions go round, the last one that was written, `[batch]`, and the number of slots.
    round: Option<(Tensor, usize)>,
    /// Where tokens see the whole text, how many of each row's are real, `[batch]`.
    lengths: Option<Tensor>,
}

impl Keys {
    fn new(g: &mut Graph, cache: &LayerCache<'_>, sequence: Sequence, lengths: Option<Tensor>) -> Self {
        let positions = sequence.positions;
        let round = cache.round().map(|slots| {
            let shape = g.shape(positions).to_vec();
            let tokens = shape.get(1).copied().unwrap_or(1);
            let last = g.slice_dimension(positions, 1, tokens.saturating_sub(1), tokens);
            let batch = shape.get(..1).unwrap_or_default();
            (g.reshape(last, batch), slots)
        });
        Self { positions, round, lengths }
    }

    /// The positions of the keys in slots from `first` on, in the last dimension of `shape`, `[batch, …, slots]`. Slots that
    /// hold nothing yet have negative ones.
    fn positions(&self, g: &mut Graph, first: Tensor, shape: &[usize]) -> Tensor {
        let last = shape.len().saturating_sub(1);
        let index = g.iota(Dtype::I32, shape.get(last..).unwrap_or_default(), 0);
        let first = g.broadcast_like(first, index);
        let slot = g.add(index, first);
        let slot = g.broadcast_in_dim(slot, shape, &[last]);
        let Some((written, slots)) = self.round else { return slot };
        // A slot holds the last position that belongs there.
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
struct Partial {
    /// Largest score so far, `[batch, kv_heads, group, tokens]`.
    max: Tensor,
    /// Sum of `exp(score - max)`, as `max`.
    sum: Tensor,
    /// Sum of `exp(score - max) · value`, `max`'s dimensions and `head_dim`.
    weighted: Tensor,
}

/// Writes the tokens' keys and values to the cache and attends to all positions, up to each token's own where it is causal:
/// `[batch, tokens, hidden]` → the same.
pub(crate) fn attention(
    b: &mut Builder<'_>,
    layer: &Attention,
    cache: &mut LayerCache<'_>,
    rotation: Option<Rotation>,
    sequence: Sequence,
    x: Tensor,
) -> Tensor {
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (operand, isa) = (b.operand(), kernel::isa(b, layer, tokens));
    let (kv_heads, head_dim) = (layer.kv_heads, layer.head_dim);
    let group = layer.heads.checked_div(kv_heads).unwrap_or(0);
    let projections = [("q_proj", &layer.query), ("k_proj", &layer.key), ("v_proj", &layer.value)];
    let [query, key, value] = linears(b, projections, x);
    let query = b.scope("q_norm", |b| heads(b, layer.query_norm.as_ref(), layer.heads, query));
    let key = b.scope("k_norm", |b| heads(b, layer.key_norm.as_ref(), kv_heads, key));
    let value = heads(b, None, kv_heads, value);
    let g = &mut b.graph;
    let [query, key, value] = [query, key, value].map(|x| layer.clip.map_or(x, |limit| g.clip(x, limit)));
    let [query, key] = [query, key].map(|x| rotation.map_or(x, |rotation| rope::rotate(g, rotation, x)));
    cache.append(g, Half::Keys, sequence.start, key);
    cache.append(g, Half::Values, sequence.start, value);

    let query = g.scale(query, layer.scale);
    let attended = match isa {
        Some(isa) => kernel::attend(b, isa, layer, query, cache, sequence),
        None => {
            let query = g.reshape(query, &[batch, tokens, kv_heads, group, head_dim]);
            let query = g.transpose(query, &[0, 2, 3, 1, 4]);
            let query = g.convert(query, operand);
            let attended = attend(b, layer, query, cache, sequence);
            b.graph.transpose(attended, &[0, 3, 1, 2, 4])
        }
    };
    let attended = b.graph.reshape(attended, &[batch, tokens, layer.heads * head_dim]);
    linear(b, ("o_proj", &layer.output), attended)
}

/// `x`, `[batch, tokens, heads · head_dim]`, as heads, with the norm that they have.
fn heads(b: &mut Builder<'_>, of_heads: Option<&Norm>, count: usize, x: Tensor) -> Tensor {
    let &[batch, tokens, width] = b.graph.shape(x) else {
        return x;
    };
    let split = [batch, tokens, count, width.checked_div(count).unwrap_or(0)];
    match of_heads {
        None => b.graph.reshape(x, &split),
        Some(layer) if layer.shape() == [width] => {
            let normed = norm(b, layer, x);
            b.graph.reshape(normed, &split)
        }
        Some(layer) => {
            let x = b.graph.reshape(x, &split);
            norm(b, layer, x)
        }
    }
}

/// Softmax attention of `query`, `[batch, kv_heads, group, tokens, head_dim]`, to the cache's span; `f32`, as `query`.
fn attend(
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
    let keys = Keys::new(g, cache, sequence, lengths);
    let mut total = match (sequence.span, cache.round()) {
        (Span::Prefix(size), round) => {
            let first = g.scalar(0.0, Dtype::I32);
            let size = round.unwrap_or(size);
            let cached = Half::BOTH.map(|half| cache.prefix(g, half, size));
            attend_block(g, layer, query, cached, keys, first)
        }
        (Span::Blocks { end, size }, None) => attend_blocks(g, layer, query, cache, keys, (end, size)),
        (Span::Blocks { size, .. }, Some(slots)) => {
            let end = g.host_number(slots);
            attend_blocks(g, layer, query, cache, keys, (end, size))
        }
    };
    if let Some(sinks) = &layer.sinks {
        let scores = b.weight_f32(sinks);
        let g = &mut b.graph;
        let rows = g.shape(total.max).to_vec();
        let heads = g.reshape(scores, rows.get(1..3).unwrap_or_default());
        let max = g.broadcast_in_dim(heads, &rows, &[1, 2]);
        let shape = g.shape(total.weighted).to_vec();
        let weighted = g.full(0.0, Dtype::F32, &shape);
        let sum = g.full(1.0, Dtype::F32, &rows);
        total = merge(g, total, Partial { max, sum, weighted });
    }
    let g = &mut b.graph;
    let shape = g.shape(total.weighted).to_vec();
    let sum = g.broadcast_in_dim(total.sum, &shape, &[0, 1, 2, 3]);
    g.divide(total.weighted, sum)
}

fn attend_blocks(
    g: &mut Graph,
    layer: &Attention,
    query: Tensor,
    cache: &LayerCache<'_>,
    at: Keys,
    (end, size): (HostIndex, usize),
) -> Partial {
    let shape = g.shape(query).to_vec();
    let rows = shape[..shape.len().saturating_sub(1)].to_vec();
    // Below any score, and finite: with a window a token may see nothing of the first blocks, and -inf - -inf is NaN.
    let max = g.full(f64::from(f32::MIN), Dtype::F32, &rows);
    let sum = g.full(0.0, Dtype::F32, &rows);
    let weighted = g.full(0.0, Dtype::F32, &shape);
    let state = g.for_loop(end, size, &[max, sum, weighted], |g, offset, state| {
        let offset = g.host_scalar(offset);
        let [keys, values] = Half::BOTH.map(|half| cache.block(g, half, offset, size));
        let block = attend_block(g, layer, query, [keys, values], at, offset);
        let merged = merge(g, Partial { max: state[0], sum: state[1], weighted: state[2] }, block);
        vec![merged.max, merged.sum, merged.weighted]
    });
    Partial { max: state[0], sum: state[1], weighted: state[2] }
}

/// Attention to the keys and values at positions `first..`, `[batch, kv_heads, size, head_dim]`.
fn attend_block(
    g: &mut Graph,
    layer: &Attention,
    query: Tensor,
    cached: [Tensor; 2],
    at: Keys,
    first: Tensor,
) -> Partial {
    let operand = g.dtype(query);
    let [keys, values] = cached.map(|cached| g.convert(cached, operand));
    let scores =
        DotDimensions { lhs_batch: &[0, 1], rhs_batch: &[0, 1], lhs_contract: &[4], rhs_contract: &[3] };
    let scores = g.dot_general(query, keys, &scores, Dtype::F32);
    let scores = layer.soft_cap.map_or(scores, |cap| g.soft_cap(scores, cap));
    let shape = g.shape(scores).to_vec();
    let visible = visible(g, layer.window, at, first, &shape);
    let hidden = g.full(f64::NEG_INFINITY, Dtype::F32, &shape);
    let scores = g.select(visible, scores, hidden);
    let max = g.reduce(scores, Reduction::Max, &[4]);
    let max_all = g.broadcast_in_dim(max, &shape, &[0, 1, 2, 3]);
    let shifted = g.subtract(scores, max_all);
    let exp = g.exponential(shifted);
    // A block of which a token sees nothing has the maximum -inf, and -inf - -inf is NaN: such terms count nothing.
    let zero = g.full(0.0, Dtype::F32, &shape);
    let exp = g.select(visible, exp, zero);
    let exp = g.convert(exp, operand);
    // The sum as a product: a reduction would be fused with the exponentials, and whole rows of them would go to the
    // stack, which is too small for them.
    let ones = g.full(1.0, operand, shape.get(4..).unwrap_or_default());
    let sum = DotDimensions { lhs_contract: &[4], rhs_contract: &[0], ..DotDimensions::default() };
    let sum = g.dot_general(exp, ones, &sum, Dtype::F32);
    let weighted =
        DotDimensions { lhs_batch: &[0, 1], rhs_batch: &[0, 1], lhs_contract: &[4], rhs_contract: &[2] };
    let weighted = g.dot_general(exp, values, &weighted, Dtype::F32);
    Partial { max, sum, weighted }
}

/// Whether a token (dimension 3) sees a key (dimension 4): the key's position is not after its own, nor so far before it
/// that it is out of the window. Where attention is not causal, it sees every real one.
fn visible(g: &mut Graph, window: Option<usize>, at: Keys, first: Tensor, shape: &[usize]) -> Tensor {
    let keys = at.positions(g, first, shape);
    if let Some(lengths) = at.lengths {
        let lengths = g.broadcast_in_dim(lengths, shape, &[0]);
        return g.lt(keys, lengths);
    }
    let positions = g.broadcast_in_dim(at.positions, shape, &[0, 3]);
    let mut visible = g.le(keys, positions);
    let Some(window) = window else { return visible };
    if at.round.is_some() {
        let first = g.full(0.0, Dtype::I32, shape);
        let is_there = g.ge(keys, first);
        visible = g.and(visible, is_there);
    }
    let distance = g.subtract(positions, keys);
    #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
    let window = g.full(window as f64, Dtype::I32, shape);
    let near = g.lt(distance, window);
    g.and(visible, near)
}

/// Two disjoint blocks as one.
fn merge(g: &mut Graph, a: Partial, b: Partial) -> Partial {
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
    Partial { max, sum, weighted }
}
