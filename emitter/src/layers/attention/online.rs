//! Attention as generated code.
//!
//! It attends to blocks of positions with a running maximum and sum: the online softmax of Milakov and Gimelshein 2018, as
//! in FlashAttention. So no score matrix is larger than one block. A text that attends to itself is a single block.

use mlxcel_artifacts::entry::PAGE;
use mlxcel_models::Attention;
use safetensors::Dtype;

use super::sequence::PageTable;
use crate::{
    graph::{Graph, HostIndex, Tensor},
    layers::{
        builder::Builder,
        cache::{KeyOrValue, LayerCache},
    },
    ops::{DotDimensions, Reduction},
};

/// Pages of a block: 256 positions.
const BLOCK_PAGES: usize = 4;

/// The rules for which keys a row sees.
#[derive(Clone, Copy)]
enum Mask {
    /// Keys up to the row's own position, and inside the window.
    Causal {
        /// The position of each row, `[batch, tokens]`.
        positions: Tensor,
        /// The position of the first key, `[batch]`. Without it, it is 0.
        first: Option<Tensor>,
        window: Option<usize>,
    },
    /// Every real key. Has the number of real keys of each sequence, `[batch]`.
    Text(Tensor),
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

/// Computes softmax attention of `query`, `[batch, kv_heads, group, tokens, head_dim]`, to the pages of each sequence up to
/// `end`: `f32`, in the shape of `query`.
pub(super) fn attend_to_pages(
    b: &mut Builder<'_>,
    layer: &Attention,
    query: Tensor,
    cache: &LayerCache<'_>,
    positions: Tensor,
    end: HostIndex,
) -> Tensor {
    let g = &mut b.graph;
    let PageTable { pages, first_pages, .. } = cache.table();
    let pages = whole_blocks(g, pages);
    let size = BLOCK_PAGES * PAGE;
    let first = first_pages.map(|first| {
        let page = g.full_like(first, PAGE);
        g.multiply(first, page)
    });
    // A table that begins behind the window is short: all of it is attended to.
    let end = match first {
        None => end,
        Some(_) => g.host_number(g.shape(pages).last().copied().unwrap_or(1) * PAGE),
    };
    let mask = Mask::Causal { positions, first, window: layer.window };
    let shape = g.shape(query).to_vec();
    let rows = shape[..shape.len().saturating_sub(1)].to_vec();
    // The least finite number: with a window a row may see nothing of the first blocks, and -inf - -inf is NaN.
    let max = g.full(f64::from(f32::MIN), Dtype::F32, &rows);
    let sum = g.full(0.0, Dtype::F32, &rows);
    let weighted = g.full(0.0, Dtype::F32, &shape);
    let state = g.for_loop(end, size, &[max, sum, weighted], |g, offset, state| {
        let offset = g.host_scalar(offset);
        let table = block_of_table(g, pages, offset);
        let cached = KeyOrValue::BOTH.map(|which| cache.pages(g, which, table));
        let block = attend_block(g, layer, query, cached, mask, offset);
        let merged = merge(g, SoftmaxState { max: state[0], sum: state[1], weighted: state[2] }, block);
        vec![merged.max, merged.sum, merged.weighted]
    });
    finish(b, layer, SoftmaxState { max: state[0], sum: state[1], weighted: state[2] })
}

/// Computes softmax attention of `query`, `[batch, kv_heads, group, tokens, head_dim]`, to the keys of the same texts,
/// `[batch, kv_heads, tokens, head_dim]`: `f32`, in the shape of `query`. Causal layers see those up to each row's position,
/// others all real ones.
pub(super) fn attend_to_text(
    b: &mut Builder<'_>,
    layer: &Attention,
    query: Tensor,
    keys_and_values: [Tensor; 2],
    positions: Tensor,
) -> Tensor {
    let &[batch, _, _, tokens, _] = b.graph.shape(query) else {
        return query;
    };
    let mask = if layer.causal {
        Mask::Causal { positions, first: None, window: layer.window }
    } else {
        Mask::Text(b.lengths(batch, tokens))
    };
    let g = &mut b.graph;
    let first = g.scalar(0.0, Dtype::I32);
    let state = attend_block(g, layer, query, keys_and_values, mask, first);
    finish(b, layer, state)
}

/// Returns the pages of a table, `[sequences, pages]`, with page 0 added up to whole blocks.
fn whole_blocks(g: &mut Graph, pages: Tensor) -> Tensor {
    let &[sequences, count] = g.shape(pages) else { return pages };
    let missing = count.next_multiple_of(BLOCK_PAGES) - count;
    if missing == 0 {
        return pages;
    }
    let padding = g.full(0.0, Dtype::I32, &[sequences, missing]);
    g.concatenate(&[pages, padding], 1)
}

/// Returns the pages of the block that begins at the position `offset` of the table: `[sequences, BLOCK_PAGES]`.
fn block_of_table(g: &mut Graph, pages: Tensor, offset: Tensor) -> Tensor {
    let &[sequences, _] = g.shape(pages) else { return pages };
    let page = g.full_like(offset, PAGE);
    let (zero, first) = (g.scalar(0.0, Dtype::I32), g.divide(offset, page));
    g.dynamic_slice(pages, &[zero, first], &[sequences, BLOCK_PAGES])
}

/// Adds the sinks and divides by the sum.
fn finish(b: &mut Builder<'_>, layer: &Attention, mut total: SoftmaxState) -> Tensor {
    if let Some(sinks) = &layer.sinks {
        let scores = b.weight_f32(sinks);
        total = with_sinks(&mut b.graph, total, scores);
    }
    let g = &mut b.graph;
    // A padding row can see nothing: its window lies behind the table. 0 / 0 would be NaN, and its keys and values go to
    // page 0, where products with zero read them. Real rows have sums of at least 1.
    let least = g.full_like(total.sum, 1);
    let sum = g.maximum(total.sum, least);
    let shape = g.shape(total.weighted).to_vec();
    let sum = g.broadcast_in_dim(sum, &shape, &[0, 1, 2, 3]);
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

/// Attends to the keys and values from the key `first` on, `[batch, kv_heads, size, head_dim]`.
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
    let visible = visible(g, mask, first, &shape);
    let hidden = g.full(f64::NEG_INFINITY, Dtype::F32, &shape);
    let scores = g.select(visible, scores, hidden);
    let max = g.reduce(scores, Reduction::Max, &[4]);
    let max_all = g.broadcast_in_dim(max, &shape, &[0, 1, 2, 3]);
    let shifted = g.subtract(scores, max_all);
    let exp = g.exponential(shifted);
    // If a row sees nothing of the block, the maximum is -inf, and -inf - -inf is NaN. Such terms become zero.
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

/// Returns whether each row (dimension 3) sees each key (dimension 4), of which the first is `offset`.
fn visible(g: &mut Graph, mask: Mask, offset: Tensor, shape: &[usize]) -> Tensor {
    let index = g.iota(Dtype::I32, shape, 4);
    let offset = g.broadcast_in_dim(offset, shape, &[]);
    let mut keys = g.add(index, offset);
    match mask {
        Mask::Text(lengths) => {
            let lengths = g.broadcast_in_dim(lengths, shape, &[0]);
            g.lt(keys, lengths)
        }
        Mask::Causal { positions, first, window } => {
            if let Some(first) = first {
                let first = g.broadcast_in_dim(first, shape, &[0]);
                keys = g.add(keys, first);
            }
            let positions = g.broadcast_in_dim(positions, shape, &[0, 3]);
            let visible = g.le(keys, positions);
            let Some(window) = window else { return visible };
            let distance = g.subtract(positions, keys);
            let window = g.full_like(distance, window);
            let near = g.lt(distance, window);
            g.and(visible, near)
        }
    }
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
