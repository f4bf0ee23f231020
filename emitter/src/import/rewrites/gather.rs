//! Gathers with batch dimensions, which iree-compile does not have: their indices have a component more for each.

use safetensors::Dtype;

use super::super::{
    ast::{Attributes, Op},
    attributes::{field, field_sizes},
    replay::Replay,
};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
};

/// Returns what stands for a gather, if it has batch dimensions.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let (&[x, indices], Some(text)) = (operands, op.attribute("dimension_numbers")) else { return Ok(None) };
    let batching = field_sizes(text, "operand_batching_dims");
    if batching.is_empty() {
        return Ok(None);
    }
    let of_indices = field_sizes(text, "start_indices_batching_dims");
    let vector = field(text, "index_vector_dim").and_then(|text| text.parse().ok()).unwrap_or_default();
    if vector > replay.graph.shape(indices).len() {
        return Ok(None);
    }
    let results = replay.result_types(op, operands, &[])?;
    let indices = extended(&mut replay.graph, indices, vector, &of_indices);
    let mut map = batching.clone();
    map.extend(field_sizes(text, "start_index_map"));
    let mut collapsed = field_sizes(text, "collapsed_slice_dims");
    collapsed.extend(&batching);
    collapsed.sort_unstable();
    let numbers = format!(
        "#stablehlo.gather<offset_dims = {:?}, collapsed_slice_dims = {collapsed:?}, start_index_map = {map:?}, index_vector_dim = {vector}>",
        field_sizes(text, "offset_dims")
    );
    let mut attributes: Attributes<'_> = op.attributes.clone();
    attributes.insert("dimension_numbers", &numbers);
    attributes.insert("indices_are_sorted", "false");
    Ok(Some(replay.add(op.name, &[x, indices], &attributes, Vec::new(), results)))
}

/// Returns indices that begin with their own place in some dimensions.
fn extended(g: &mut Graph, indices: Tensor, vector: usize, dimensions: &[usize]) -> Tensor {
    // A byte cannot hold every place.
    let dtype = g.dtype(indices);
    let indices = if dtype.bitsize() < 32 { g.convert(indices, Dtype::I32) } else { indices };
    let mut shape = g.shape(indices).to_vec();
    if vector == shape.len() {
        shape.push(1);
    }
    let whole = g.reshape(indices, &shape);
    shape[vector] = 1;
    let dtype = g.dtype(indices);
    let mut parts: Vec<_> = dimensions.iter().map(|&d| g.iota(dtype, &shape, d)).collect();
    parts.push(whole);
    g.concatenate(&parts, vector)
}
