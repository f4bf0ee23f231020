//! Attention sinks in StableHLO, for results that kernels leave in chunks.

use mlxcel_models::Weight;
use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    layers::builder::Builder,
    ops::Reduction,
};

/// Merges chunks as `attention_combine` does, with one more score for each head, the sink, which has no value.
///
/// `sums` are `[batch, chunks, tokens, heads, head_dim]`. `max_sum`, `[batch, chunks, tokens, heads, 2]`, has the largest
/// score, in units of log 2, and the sum of weights.
pub(super) fn combine(b: &mut Builder<'_>, sinks: &Weight, [sums, max_sum]: [Tensor; 2]) -> Tensor {
    let sinks = b.weight_f32(sinks);
    let g = &mut b.graph;
    let shape = g.shape(sums).to_vec();
    let &[batch, chunks, tokens, heads, _] = shape.as_slice() else {
        return sums;
    };
    let by_chunk = [batch, chunks, tokens, heads];
    let [max, weights] = [0, 1].map(|index| {
        let part = g.slice_dimension(max_sum, 4, index, index + 1);
        g.reshape(part, &by_chunk)
    });
    let rows = [batch, tokens, heads];
    let sinks = g.scale(sinks, std::f64::consts::LOG2_E);
    let sinks = g.broadcast_in_dim(sinks, &rows, &[2]);
    let largest = g.reduce(max, Reduction::Max, &[1]);
    let largest = g.maximum(largest, sinks);
    let power = |g: &mut Graph, x: Tensor, base: Tensor| {
        let shifted = g.subtract(x, base);
        let scaled = g.scale(shifted, std::f64::consts::LN_2);
        g.exponential(scaled)
    };
    let base = g.broadcast_in_dim(largest, &by_chunk, &[0, 2, 3]);
    let factors = power(g, max, base);
    let weights = g.multiply(weights, factors);
    let sum = g.reduce(weights, Reduction::Sum, &[1]);
    let sink_weights = power(g, sinks, largest);
    let sum = g.add(sum, sink_weights);
    // The kernel does not write the sums of a chunk without weight.
    let zero = g.full(0.0, Dtype::F32, &shape);
    let spread = g.broadcast_in_dim(factors, &shape, &[0, 1, 2, 3]);
    let has_weight = g.gt(spread, zero);
    let weighted = g.multiply(sums, spread);
    let weighted = g.select(has_weight, weighted, zero);
    let total = g.reduce(weighted, Reduction::Sum, &[1]);
    let whole = g.shape(total).to_vec();
    let sum = g.broadcast_in_dim(sum, &whole, &[0, 1, 2]);
    g.divide(total, sum)
}
