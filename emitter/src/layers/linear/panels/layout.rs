//! Where the rows of a weight are in its panels.

use crate::{
    graph::{Graph, Tensor},
    layers::weights::concatenate_padded,
};

/// Splits the outputs of a weight, `[outputs, …]`, into panels: `[panels, lanes, …]`. Missing outputs of the last panel are
/// zeros.
pub(super) fn split_into_panels(g: &mut Graph, weight: Tensor, lanes: usize) -> Tensor {
    let rows = concatenate_padded(g, &[weight], lanes);
    let mut shape = g.shape(rows).to_vec();
    let Some(outputs) = shape.first().copied() else {
        return rows;
    };
    shape.splice(..1, [outputs / lanes, lanes]);
    g.reshape(rows, &shape)
}
