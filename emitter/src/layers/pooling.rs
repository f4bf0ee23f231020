//! Pooling: one vector for a whole text.

use mlxcel_models::{Pooling, PoolingKind};
use safetensors::Dtype;

use super::builder::Builder;
use crate::{graph::Tensor, ops::Reduction};

/// The smallest length that a vector is divided by, as in PyTorch's `normalize`.
const MIN_LENGTH: f64 = 1e-12;

/// Pools hidden states without padding, see [`Pooling`]: `[batch, tokens, hidden]` to `[batch, hidden]`.
pub(crate) fn pooling(b: &mut Builder<'_>, layer: Pooling, x: Tensor) -> Tensor {
    let &[batch, tokens, hidden] = b.graph.shape(x) else {
        return x;
    };
    let lengths = b.lengths(batch, tokens);
    let g = &mut b.graph;
    // Fused with the last norm, whole rows exceed IREE's stack limit.
    let x = g.barrier(x);
    let whole = [batch, hidden];
    let pooled = match layer.kind {
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
    };
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
