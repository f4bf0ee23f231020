//! Gradients of reductions.

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::Reduction,
};

/// Adds the gradient of the operand of a reduction.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if step.name() != "stablehlo.reduce" || step.op.operands.len() != 2 || step.wants(1) {
        return false;
    }
    let Some(reduction) = step.op.regions.first().and_then(Reduction::of) else { return false };
    let (x, z, d) = (step.operand(0), step.result(), step.gradient());
    let dimensions = step.integers("dimensions");
    let shape = g.shape(x).to_vec();
    let kept: Vec<_> = (0..shape.len()).filter(|dimension| !dimensions.contains(dimension)).collect();
    step.send(g, 0, |g| match reduction {
        Reduction::Sum => g.broadcast_in_dim(d, &shape, &kept),
        Reduction::Product => {
            let others = product_of_others(g, x, &dimensions);
            let d = g.broadcast_in_dim(d, &shape, &kept);
            g.multiply(d, others)
        }
        Reduction::Max | Reduction::Min => {
            let extremum = g.broadcast_in_dim(z, &shape, &kept);
            let hit = g.eq(x, extremum);
            let hit = g.convert(hit, g.dtype(x));
            let count = g.reduce(hit, Reduction::Sum, &dimensions);
            let share = g.divide(d, count);
            let share = g.broadcast_in_dim(share, &shape, &kept);
            g.multiply(share, hit)
        }
        Reduction::And | Reduction::Or => g.zeros_like(x),
    });
    true
}

/// Returns for each element the product of the others that are reduced with it. A quotient would be wrong where one is zero.
fn product_of_others(g: &mut Graph, x: Tensor, dimensions: &[usize]) -> Tensor {
    let shape = g.shape(x).to_vec();
    let kept: Vec<_> = (0..shape.len()).filter(|dimension| !dimensions.contains(dimension)).collect();
    let order: Vec<_> = kept.iter().chain(dimensions).copied().collect();
    let moved = g.transpose(x, &order);
    let moved_shape = g.shape(moved).to_vec();
    let rows: usize = kept.iter().map(|&dimension| shape[dimension]).product();
    let count: usize = dimensions.iter().map(|&dimension| shape[dimension]).product();
    let flat = g.reshape(moved, &[rows, count]);
    let square = g.broadcast_in_dim(flat, &[rows, count, count], &[0, 2]);
    let index = g.iota(safetensors::Dtype::I32, &[rows, count, count], 1);
    let other = g.iota(safetensors::Dtype::I32, &[rows, count, count], 2);
    let is_own = g.eq(index, other);
    let one = g.full_like(square, 1);
    let others = g.select(is_own, one, square);
    let product = g.reduce(others, Reduction::Product, &[2]);
    let product = g.reshape(product, &moved_shape);
    g.transpose(product, &super::shape::inverse(&order))
}
