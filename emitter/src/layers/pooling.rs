//! One vector of a text.

use mlxcel_models::{Pooling, PoolingKind};
use safetensors::Dtype;

use super::Builder;
use crate::{Reduction, Tensor};

/// The least length that a vector is divided by, as PyTorch's `normalize` has it.
const LEAST_LENGTH: f64 = 1e-12;

/// See [`Pooling`]: hidden states, `[batch, tokens, hidden]`, of which padding counts for nothing → `[batch, hidden]`.
pub(crate) fn pooling(b: &mut Builder<'_>, layer: Pooling, x: Tensor) -> Tensor {
    let &[batch, tokens, hidden] = b.graph.shape(x) else {
        return x;
    };
    let lengths = b.lengths(batch, tokens);
    let g = &mut b.graph;
    // Fused with the last norm, the sums would be made of its rows on the stack, which is too small for them.
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
    if !layer.normalised {
        return pooled;
    }
    let pooled = g.barrier(pooled);
    let squares = g.multiply(pooled, pooled);
    let sum = g.reduce(squares, Reduction::Sum, &[1]);
    let least = g.full(LEAST_LENGTH * LEAST_LENGTH, Dtype::F32, &[batch]);
    let sum = g.maximum(sum, least);
    let scale = g.rsqrt(sum);
    let scale = g.broadcast_in_dim(scale, &whole, &[0]);
    g.multiply(pooled, scale)
}
