//! Norms.

use mlxcel_models::Norm;

use super::Builder;
use crate::{Reduction, Tensor};

/// Root-mean-square norm over the last dimension, in `f32` (Zhang and Sennrich 2019, equation 4, with Llama's epsilon).
pub(crate) fn norm(b: &mut Builder<'_>, layer: &Norm, x: Tensor) -> Tensor {
    let weight = b.weight_f32(&layer.weight);
    let g = &mut b.graph;
    let shape = g.shape(x).to_vec();
    let last = shape.len().saturating_sub(1);
    let kept: Vec<_> = (0..last).collect();
    let squares = g.multiply(x, x);
    let sum = g.reduce(squares, Reduction::Sum, &[last]);
    let reduced = &shape[..last];
    #[expect(clippy::cast_precision_loss, reason = "a width is below 2^52")]
    let width = g.full(shape.last().copied().unwrap_or(1) as f64, safetensors::Dtype::F32, reduced);
    let mean = g.divide(sum, width);
    let epsilon = g.full(layer.epsilon, safetensors::Dtype::F32, reduced);
    let shifted = g.add(mean, epsilon);
    let scale = g.rsqrt(shifted);
    let scale = g.broadcast_in_dim(scale, &shape, &kept);
    let normalised = g.multiply(x, scale);
    let weight = g.broadcast_in_dim(weight, &shape, &[last]);
    g.multiply(normalised, weight)
}
