//! Pooling: one vector for a whole text.

use mlxcel_models::{Pooling, PoolingKind};
use safetensors::Dtype;

use super::{
    attention::{Division, Rows},
    builder::Builder,
};
use crate::{
    graph::{Graph, Tensor},
    ops::{DotDimensions, Reduction},
};

/// The smallest length that a vector is divided by, as in PyTorch's `normalize`.
const MIN_LENGTH: f64 = 1e-12;

/// Pools hidden states without padding, see [`Pooling`]: `[batch, tokens, hidden]` to `[sequences, hidden]`.
pub(crate) fn pooling(b: &mut Builder<'_>, layer: Pooling, x: Tensor, rows: &Rows) -> Tensor {
    // Fused with the last norm, whole rows exceed IREE's stack limit.
    let x = b.graph.barrier(x);
    let pooled = match rows.division {
        Division::Ragged { begins, .. } => pool_ragged(&mut b.graph, layer.kind, x, begins),
        Division::Uniform { .. } | Division::InPlace => pool_uniform(b, layer.kind, x),
    };
    let g = &mut b.graph;
    let whole = g.shape(pooled).to_vec();
    let batch = whole.first().copied().unwrap_or(1);
    if !layer.normalized {
        return pooled;
    }
    let pooled = g.barrier(pooled);
    let squares = g.multiply(pooled, pooled);
    let sum = g.reduce(squares, Reduction::Sum, &[1]);
    let least = g.full(MIN_LENGTH * MIN_LENGTH, Dtype::F32, &[batch]);
    let sum = g.maximum(sum, least);
    let scale = g.rsqrt(sum);
    let scale = g.broadcast_in_dim(scale, &whole, &[0]);
    g.multiply(pooled, scale)
}

/// Pools the rows of each sequence: `[batch, tokens, hidden]` to `[batch, hidden]`.
fn pool_uniform(b: &mut Builder<'_>, kind: PoolingKind, x: Tensor) -> Tensor {
    let &[batch, tokens, hidden] = b.graph.shape(x) else {
        return x;
    };
    let lengths = b.lengths(batch, tokens);
    let g = &mut b.graph;
    let whole = [batch, hidden];
    match kind {
        PoolingKind::Cls => {
            let first = g.slice_dimension(x, 1, 0, 1);
            g.reshape(first, &whole)
        }
        PoolingKind::Mean => {
            let shape = [batch, tokens, hidden];
            let place = g.iota(Dtype::I32, &shape, 1);
            let count = g.broadcast_in_dim(lengths, &shape, &[0]);
            let is_real = g.lt(place, count);
            let zero = g.full(0.0, Dtype::F32, &shape);
            let real = g.select(is_real, x, zero);
            let sum = g.reduce(real, Reduction::Sum, &[1]);
            let count = g.convert(lengths, Dtype::F32);
            let count = g.broadcast_in_dim(count, &whole, &[0]);
            g.divide(sum, count)
        }
    }
}

/// Pools rows from `begins[s]` to `begins[s + 1]`: `[1, rows, hidden]` to `[sequences, hidden]`.
fn pool_ragged(g: &mut Graph, kind: PoolingKind, x: Tensor, begins: Tensor) -> Tensor {
    let (&[_, rows, hidden], &[ends]) = (g.shape(x), g.shape(begins)) else {
        return x;
    };
    let sequences = ends.saturating_sub(1);
    let x = g.reshape(x, &[rows, hidden]);
    let (first, end) = (g.slice(begins, &[0], &[sequences]), g.slice(begins, &[1], &[ends]));
    match kind {
        PoolingKind::Cls => g.take_rows(x, first),
        PoolingKind::Mean => {
            // A product with ones where a row is of the sequence, because their number is known only when it runs.
            let shape = [sequences, rows];
            let row = g.iota(Dtype::I32, &shape, 1);
            let [from, to] = [first, end].map(|bound| g.broadcast_in_dim(bound, &shape, &[0]));
            let (after, before) = (g.ge(row, from), g.lt(row, to));
            let is_own = g.and(after, before);
            // Not a conversion, which iree-compile 3.13 fuses with the product as one of a signed number: true would be -1.
            let (one, zero) = (g.full(1.0, Dtype::F32, &shape), g.full(0.0, Dtype::F32, &shape));
            let ones = g.select(is_own, one, zero);
            let sums = DotDimensions { lhs_contract: &[1], rhs_contract: &[0], ..DotDimensions::default() };
            // Kernels do not write padding, and zero times NaN is NaN.
            let shape = [rows, hidden];
            let row = g.iota(Dtype::I32, &shape, 0);
            let real_end = g.slice(begins, &[sequences], &[ends]);
            let real_end = g.broadcast_in_dim(real_end, &shape, &[0]);
            let is_real = g.lt(row, real_end);
            let zero = g.full(0.0, Dtype::F32, &shape);
            let real = g.select(is_real, x, zero);
            let sums = g.dot_general(ones, real, &sums, Dtype::F32);
            let count = g.subtract(end, first);
            // Sequences that the call does not have are empty.
            let one = g.full_like(count, 1);
            let count = g.maximum(count, one);
            let count = g.convert(count, Dtype::F32);
            let count = g.broadcast_in_dim(count, &[sequences, hidden], &[0]);
            g.divide(sums, count)
        }
    }
}
