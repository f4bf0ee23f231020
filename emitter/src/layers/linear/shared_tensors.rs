//! Layers that share a tensor of the checkpoint: the product is computed once and split.

use mlxcel_models::{Linear, Part};

use crate::graph::{Graph, Tensor};

/// Returns the first layer of each distinct tensor, and for every layer the index of its tensor.
pub(in crate::layers) fn distinct_tensors<'l>(
    layers: impl Iterator<Item = &'l Linear>,
) -> (Vec<usize>, Vec<usize>) {
    let (mut firsts, mut tensors) = (Vec::new(), Vec::new());
    let mut tensor_index = |(index, layer): (usize, &'l Linear)| {
        let known = tensors.iter().position(|weight| *weight == &layer.weight);
        known.unwrap_or_else(|| {
            firsts.push(index);
            tensors.push(&layer.weight);
            tensors.len() - 1
        })
    };
    let indices = layers.enumerate().map(&mut tensor_index).collect();
    (firsts, indices)
}

/// Selects the layer's outputs from `y`, `[batch, tokens, outputs of the tensor]`.
pub(in crate::layers) fn layer_outputs(g: &mut Graph, layer: &Linear, y: Tensor) -> Tensor {
    let (Some(Part { groups, first, size }), &[batch, tokens, outputs]) = (layer.part, g.shape(y)) else {
        return y;
    };
    if groups == 1 {
        return g.slice_dimension(y, 2, first, first + size);
    }
    let grouped = g.reshape(y, &[batch, tokens, groups, outputs / groups]);
    let part = g.slice_dimension(grouped, 3, first, first + size);
    g.reshape(part, &[batch, tokens, groups * size])
}
