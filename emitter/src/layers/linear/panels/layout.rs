//! Where the rows of a weight are in its panels.

use crate::{
    graph::{Graph, Tensor},
    layers::weights::concatenate_padded,
};

/// Concatenates weights, `[outputs, inputs]` each, and splits the outputs into panels: `[panels, lanes, inputs]`. Missing
/// outputs of the last panel are zeros.
pub(super) fn split_into_panels(g: &mut Graph, weights: &[Tensor], lanes: usize) -> Tensor {
    let rows = concatenate_padded(g, weights, lanes);
    let mut shape = g.shape(rows).to_vec();
    let Some(outputs) = shape.first().copied() else {
        return rows;
    };
    shape.splice(..1, [outputs / lanes, lanes]);
    g.reshape(rows, &shape)
}
