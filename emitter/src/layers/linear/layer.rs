//! Linear layers, whichever way the target computes them.

use mlxcel_models::Linear;

use super::{
    dot::dot,
    gpu_matmul, gpu_matvec,
    named::{Named, by_form},
    panels,
    shared_tensors::{distinct_tensors, layer_outputs},
};
use crate::{
    form::Form,
    graph::Tensor,
    layers::{
        builder::Builder,
        weights::{Matrix, Weights},
    },
    plan::Products,
};

/// Computes `x · weightᵀ + bias`: `[batch, tokens, inputs]` to `[batch, tokens, outputs]` in `f32`.
pub(crate) fn linear(b: &mut Builder<'_>, layer: (&'static str, &Linear), x: Tensor) -> Tensor {
    let [y] = linears(b, [layer], x);
    y
}

/// Computes several linear layers of one input, as one product if the target reads packed weights. The product of a tensor
/// that several layers share is computed once.
pub(crate) fn linears<const N: usize>(
    b: &mut Builder<'_>,
    layers: [(&'static str, &Linear); N],
    x: Tensor,
) -> [Tensor; N] {
    let &[_, _, inputs] = b.graph.shape(x) else {
        return layers.map(|_| x);
    };
    if let Some((name, layer)) = layers.iter().find(|(_, layer)| layer.inputs() != inputs) {
        let problem = format!("found a weight of shape {:?}, expected {inputs} inputs", layer.weight.shape);
        return b.scope(name, |b| layers.map(|_| b.graph.fail("linear", problem.as_str())));
    }
    b.observe(layers.iter().map(|(_, layer)| *layer), x);
    // Kernels for CPUs are called for runs of one form by `products`, which packs them together.
    let runs = if b.numerics.gpu.is_some() { by_form(b, &layers) } else { vec![&layers[..]] };
    let made: Vec<_> = runs.into_iter().flat_map(|run| of_run(b, run, x)).collect();
    std::array::from_fn(|index| made[index])
}

/// Computes the linear layers of a run.
fn of_run(b: &mut Builder<'_>, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    let inputs = b.graph.shape(x).last().copied().unwrap_or(1);
    let x = if b.numerics.gpu.is_some() { in_column_order(b, layers, x) } else { x };
    let (firsts, indices) = distinct_tensors(layers.iter().map(|(_, layer)| *layer));
    let tensors: Vec<_> = firsts.into_iter().map(|first| layers[first]).collect();
    let is_row = b.graph.shape(x) == [1, 1, inputs];
    let gpu = gpu_matvec::isa(b, &tensors, inputs);
    let are_whole = tensors.len() == layers.len();
    let are_ranges = layers.iter().all(|(_, layer)| layer.part.map_or(are_whole, |part| part.groups == 1));
    if let Some((isa, _)) = gpu.filter(|_| is_row && are_ranges) {
        return gpu_matvec::products(b, isa, layers, x);
    }
    let whole: Vec<_> = match gpu {
        Some((isa, _)) if is_row => {
            let wholes: Vec<_> = tensors.iter().map(|(_, layer)| whole_tensor(layer)).collect();
            let wholes: Vec<_> =
                tensors.iter().zip(&wholes).map(|((name, _), layer)| (*name, layer)).collect();
            gpu_matvec::products(b, isa, &wholes, x)
        }
        _ => {
            let gpu = gpu.filter(|(_, weights)| gpu_matmul::takes(b, *weights, &tensors, inputs));
            let (products, are_biased) = match gpu {
                Some((isa, weights)) => gpu_matmul::products(b, isa, weights, &tensors, x),
                None => (products(b, &tensors, x), false),
            };
            if are_biased {
                products
            } else {
                tensors.iter().zip(products).map(|(tensor, y)| add_bias(b, *tensor, y)).collect()
            }
        }
    };
    let outputs = layers.iter().zip(indices);
    outputs
        .map(|((name, layer), index)| b.scope(name, |b| layer_outputs(&mut b.graph, layer, whole[index])))
        .collect()
}

/// Returns `x` with its columns in the order in which the weights of a run are packed.
fn in_column_order(b: &mut Builder<'_>, layers: &[Named<'_>], x: Tensor) -> Tensor {
    let Some(Form::Groups(form)) = layers.first().map(|(_, layer)| b.form(&layer.weight)) else { return x };
    let matrices: Vec<_> = layers.iter().map(|(_, layer)| Matrix::from(*layer)).collect();
    b.in_column_order(Weights::Layers(&matrices), x, form)
}

/// Returns the layer of all outputs of a layer's tensor.
fn whole_tensor(layer: &Linear) -> Linear {
    Linear { part: None, ..layer.clone() }
}

/// Multiplies by the tensors of layers, each once, without biases.
fn products(b: &mut Builder<'_>, tensors: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    match b.numerics.products {
        Products::Kernels(isa) => {
            let runs = by_form(b, tensors);
            runs.into_iter().flat_map(|layers| panels::products(b, isa, layers, x)).collect()
        }
        Products::Native | Products::Widened => {
            tensors.iter().map(|&tensor| b.scope(tensor.0, |b| dot(b, tensor.1, x))).collect()
        }
    }
}

/// Adds the bias to `y`, `[batch, tokens, outputs of the tensor]`.
fn add_bias(b: &mut Builder<'_>, (name, layer): Named<'_>, y: Tensor) -> Tensor {
    let Some(bias) = &layer.bias else { return y };
    b.scope(name, |b| {
        let shape = b.graph.shape(y).to_vec();
        let bias = b.weight_f32(bias);
        let bias = b.graph.broadcast_in_dim(bias, &shape, &[2]);
        b.graph.add(y, bias)
    })
}
