//! Gradients of sorts.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::ScatterDimensions,
};

/// Adds the gradients of sorted tensors: each element's goes back to where the element was.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if step.name() != "stablehlo.sort" {
        return false;
    }
    let Some(before) = step.op.regions.first() else { return false };
    let dimension = step.integers("dimension").first().copied().unwrap_or_default();
    let shape = g.shape(step.operand(0)).to_vec();
    let index = g.iota(Dtype::I32, &shape, dimension);
    let operands: Vec<_> = step.op.operands.iter().copied().chain([index]).collect();
    // The order is the same only if ties are broken in the same way, which a stable sort does.
    let sorted = g.sort(&operands, dimension, true, |g, values| {
        let compared = values.len().saturating_sub(2);
        g.replay(before, &values[..compared]).first().copied().unwrap_or(Graph::poison())
    });
    let places = sorted.last().copied().unwrap_or(Graph::poison());
    for (index, gradient) in step.gradients.clone().into_iter().enumerate() {
        let Some(gradient) = gradient else { continue };
        step.send(g, index, |g| put_along(g, gradient, places, dimension));
    }
    true
}

/// Returns the elements of `d` at `places` along a dimension. Each place occurs once.
fn put_along(g: &mut Graph, d: Tensor, places: Tensor, dimension: usize) -> Tensor {
    let shape = g.shape(d).to_vec();
    let rank = shape.len();
    let with_vector: Vec<_> = shape.iter().copied().chain([1]).collect();
    let components: Vec<_> = (0..rank)
        .map(|d| {
            let component = if d == dimension { places } else { g.iota(Dtype::I32, &shape, d) };
            g.reshape(component, &with_vector)
        })
        .collect();
    let indices = g.concatenate(&components, rank);
    let all: Vec<_> = (0..rank).collect();
    let dims = ScatterDimensions {
        update_window: &[],
        inserted_window: &all,
        scatter_to_operand: &all,
        index_vector: rank,
    };
    let zeros = g.zeros_like(d);
    g.scatter(zeros, indices, d, &dims, Graph::add)
}
