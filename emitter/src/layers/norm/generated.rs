//! Norms as generated code.

use std::slice;

use mlxcel_models::{Norm, NormKind, Weight};
use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    layers::builder::Builder,
    ops::Reduction,
};

/// Normalizes the last dimension in `f32`, see [`Norm`]. The weight's dimensions are the last ones of `x`.
pub(super) fn norm(b: &mut Builder<'_>, layer: &Norm, x: Tensor) -> Tensor {
    let shape = b.graph.shape(x).to_vec();
    let last = shape.len().saturating_sub(1);
    let kept: Vec<_> = (0..last).collect();
    let g = &mut b.graph;
    let spread = |g: &mut Graph, row_values| g.broadcast_in_dim(row_values, &shape, &kept);
    let centered = match layer.kind {
        NormKind::Rms => x,
        NormKind::Layer => {
            let mean = mean(g, x);
            // Fused with the variance, whole rows exceed IREE's stack limit.
            let mean = g.barrier(mean);
            let mean = spread(g, mean);
            g.subtract(x, mean)
        }
    };
    let squares = g.multiply(centered, centered);
    let variance = mean(g, squares);
    let epsilon = g.full(layer.epsilon, Dtype::F32, &shape[..last]);
    let shifted = g.add(variance, epsilon);
    let scale = g.rsqrt(shifted);
    let scale = spread(g, scale);
    let normalized = g.multiply(centered, scale);
    let mut weight = broadcast_weight(b, &layer.weights, &shape);
    if layer.offset != 0.0 {
        let offset = b.graph.full(layer.offset, Dtype::F32, &shape);
        weight = b.graph.add(offset, weight);
    }
    let weighted = b.graph.multiply(normalized, weight);
    let Some(bias) = &layer.bias else { return weighted };
    let bias = broadcast_weight(b, slice::from_ref(bias), &shape);
    b.graph.add(weighted, bias)
}

/// Returns the mean over the last dimension.
fn mean(g: &mut Graph, x: Tensor) -> Tensor {
    let shape = g.shape(x).to_vec();
    let last = shape.len().saturating_sub(1);
    let sum = g.reduce(x, Reduction::Sum, &[last]);
    #[expect(clippy::cast_precision_loss, reason = "a width is below 2^52")]
    let width = g.full(shape.last().copied().unwrap_or(1) as f64, Dtype::F32, &shape[..last]);
    g.divide(sum, width)
}

/// Loads a weight, or several stacked ones, and broadcasts it to `shape`.
fn broadcast_weight(b: &mut Builder<'_>, weights: &[Weight], shape: &[usize]) -> Tensor {
    let rows: Vec<_> = weights.iter().map(|weight| b.weight_f32(weight)).collect();
    let weight = match *rows.as_slice() {
        [only] => only,
        _ => {
            let rows: Vec<_> = rows
                .iter()
                .map(|&row| {
                    let one = [&[1], b.graph.shape(row)].concat();
                    b.graph.reshape(row, &one)
                })
                .collect();
            b.graph.concatenate(&rows, 0)
        }
    };
    let found = b.graph.shape(weight).to_vec();
    if found.is_empty() || !shape.ends_with(&found) {
        return b
            .graph
            .fail("norm", format!("found a weight of {found:?}, expected the last dimensions of {shape:?}"));
    }
    let dimensions: Vec<_> = (shape.len() - found.len()..shape.len()).collect();
    b.graph.broadcast_in_dim(weight, shape, &dimensions)
}
