//! Gradients of sorts.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Op, Region, Tensor},
    mlir::attributes::size,
    ops::{ScatterDimensions, places_dtype},
    types::is_integer,
};

/// Adds the gradients of sorted tensors: each element's goes back to where the element was.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if step.name() != "stablehlo.sort" {
        return false;
    }
    let Some(before) = step.op.regions.first() else { return false };
    let dimension = step.integers("dimension").first().copied().unwrap_or_default();
    let places =
        sorted_places(g, step.op, dimension).unwrap_or_else(|| sort_places(g, step, before, dimension));
    for (index, gradient) in step.gradients.clone().into_iter().enumerate() {
        let Some(gradient) = gradient else { continue };
        step.send(g, index, |g| put_along(g, gradient, places, dimension));
    }
    true
}

/// Returns the places that elements came from, if they are among what was sorted.
fn sorted_places(g: &mut Graph, op: &Op, dimension: usize) -> Option<Tensor> {
    let is_place = |op: &&Op| {
        let attribute = op.attributes.iter().find(|(name, _)| name == "iota_dimension");
        op.name == "stablehlo.iota" && attribute.is_some_and(|(_, text)| size(text) == Some(dimension))
    };
    let ops = || g.open_regions().iter().flat_map(|region| &region.ops);
    let index = op
        .operands
        .iter()
        .position(|operand| ops().filter(is_place).any(|place| place.results.contains(operand)))?;
    Some(op.results[index]).filter(|&places| is_integer(g.dtype(places)))
}

/// Sorts again, with the places of elements.
///
/// They order equal elements of a stable sort. Any other sort is repeated with its own comparison, so that it exchanges the same
/// elements.
fn sort_places(g: &mut Graph, step: &Step<'_>, before: &Region, dimension: usize) -> Tensor {
    let is_stable = step.attribute("is_stable") == "true";
    let shape = g.shape(step.operand(0)).to_vec();
    let dtype = places_dtype(step.op.operands.iter().map(|&operand| g.dtype(operand)));
    let places = g.iota(dtype, &shape, dimension);
    let operands: Vec<_> = step.op.operands.iter().copied().chain([places]).collect();
    let sorted = g.sort(&operands, dimension, false, |g, values| {
        let (values, places) = values.split_at(values.len() - 2);
        let compare = |g: &mut Graph, values: &[Tensor]| {
            g.replay(before, values).first().copied().unwrap_or(Graph::poison())
        };
        let forward = compare(g, values);
        if !is_stable {
            return forward;
        }
        let swapped: Vec<_> = values.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect();
        let backward = compare(g, &swapped);
        g.is_before(forward, backward, places)
    });
    sorted.last().copied().unwrap_or(Graph::poison())
}

/// Returns the elements of `d` at `places` along a dimension. Each place occurs once.
fn put_along(g: &mut Graph, d: Tensor, places: Tensor, dimension: usize) -> Tensor {
    let shape = g.shape(d).to_vec();
    let places = g.convert(places, Dtype::I32);
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
