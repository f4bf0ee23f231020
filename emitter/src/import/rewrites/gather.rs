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

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    #[test]
    fn a_batch_dimension_is_a_component_of_indices() {
        let line = r#"%r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>,
            indices_are_sorted = false, slice_sizes = array<i64: 1, 2>}>
            : (tensor<300x5xf32>, tensor<300x1xi8>) -> tensor<300x2xf32>"#;
        let mlir = replayed(&["tensor<300x5xf32>", "tensor<300x1xi8>"], line, "tensor<300x2xf32>").unwrap();
        let [gather] = lines_with(&mlir, "stablehlo.gather\"")[..] else { panic!("{mlir}") };
        assert!(
            gather.contains("collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1"),
            "{gather}"
        );
        assert!(gather.contains("tensor<300x2xi32>"), "{gather}");
    }
}
