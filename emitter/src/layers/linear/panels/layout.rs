//! Where the rows of a weight are in its panels.

use safetensors::Dtype;

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

/// Returns the panel and the lane of each row: `[…]` to `[…, 2]`.
pub(super) fn panel_and_lane(g: &mut Graph, rows: Tensor, lanes: usize) -> Tensor {
    let shape = g.shape(rows).to_vec();
    let full = |g: &mut Graph, value: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a number of lanes")]
        let value = g.full(value as f64, Dtype::I32, &shape);
        value
    };
    let (bits, mask) = (full(g, lanes.trailing_zeros() as usize), full(g, lanes - 1));
    let panel = g.shift_right_logical(rows, bits);
    let lane = g.and(rows, mask);
    let vector: Vec<_> = shape.iter().copied().chain([1]).collect();
    let components = [panel, lane].map(|index| g.reshape(index, &vector));
    g.concatenate(&components, shape.len())
}
