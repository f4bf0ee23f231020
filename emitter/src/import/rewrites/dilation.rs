//! Elements that are spread out, with others between them.
//!
//! iree-compile 3.13 pads between elements in place, of which generated code for GPUs leaves some out if what comes after takes few
//! of them, and code for CPUs does not always compile.

use super::super::{
    ast::Op,
    attributes::{integers, sizes},
};
use crate::graph::{Graph, Tensor};

/// Returns what stands for `pad` if it pads between elements.
pub(super) fn pad(graph: &mut Graph, op: &Op<'_>, x: Tensor, value: Tensor) -> Option<Tensor> {
    let between = op.attribute("interior_padding").and_then(sizes)?;
    let [low, high] =
        ["edge_padding_low", "edge_padding_high"].map(|name| op.attribute(name).and_then(integers));
    let (low, high) = (low?, high?);
    if between.iter().all(|count| *count == 0) || between.len() != graph.shape(x).len() {
        return None;
    }
    let steps: Vec<_> = between.iter().map(|count| count + 1).collect();
    let spread = spread(graph, x, value, &steps);
    Some(graph.pad_or_crop(spread, value, &low, &high, &vec![0; steps.len()]))
}

/// Returns a tensor whose elements are `steps` apart, with `value` between them.
fn spread(graph: &mut Graph, x: Tensor, value: Tensor, steps: &[usize]) -> Tensor {
    let mut x = x;
    for (dimension, &step) in steps.iter().enumerate() {
        let shape = graph.shape(x).to_vec();
        if step <= 1 || shape[dimension] <= 1 {
            continue;
        }
        let mut apart = shape.clone();
        apart.insert(dimension + 1, 1);
        let single = graph.reshape(x, &apart);
        apart[dimension + 1] = step - 1;
        let between = graph.broadcast_in_dim(value, &apart, &[]);
        let both = graph.concatenate(&[single, between], dimension + 1);
        let mut long = shape.clone();
        long[dimension] *= step;
        let both = graph.reshape(both, &long);
        x = graph.slice_dimension(both, dimension, 0, (shape[dimension] - 1) * step + 1);
    }
    x
}

/// Returns the input of a convolution with zeros between its elements.
pub(super) fn with_zeros(graph: &mut Graph, x: Tensor, steps: &[usize]) -> Tensor {
    let zero = graph.scalar(0.0, graph.dtype(x));
    spread(graph, x, zero, steps)
}
