//! Gradients of reductions.

use super::{shape::inverse, step::Step};
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
            let count = g.sum_over(hit, &dimensions);
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
    let before = product_before(g, flat);
    let reversed = g.reverse(flat, &[1]);
    let after = product_before(g, reversed);
    let after = g.reverse(after, &[1]);
    let product = g.multiply(before, after);
    let product = g.reshape(product, &moved_shape);
    g.transpose(product, &inverse(&order))
}

/// Returns for each element of a row the product of those before it.
///
/// Each round doubles the number of elements in a product: log n rounds of n multiplications, where one product of n - 1 for each
/// element would take n².
fn product_before(g: &mut Graph, rows: Tensor) -> Tensor {
    let count = g.shape(rows).get(1).copied().unwrap_or_default();
    if count < 2 {
        return g.full_like(rows, 1);
    }
    let mut product = moved_right(g, rows, count, 1);
    let mut factors = 1;
    while factors < count - 1 {
        let earlier = moved_right(g, product, count, factors);
        product = g.multiply(product, earlier);
        factors *= 2;
    }
    product
}

/// Moves the `count` elements of rows by some places, with ones before them.
fn moved_right(g: &mut Graph, rows: Tensor, count: usize, places: usize) -> Tensor {
    let one = g.scalar(1.0, g.dtype(rows));
    let kept = g.slice_dimension(rows, 1, 0, count - places);
    g.pad(kept, one, &[0, places], &[0, 0], &[0, 0])
}
