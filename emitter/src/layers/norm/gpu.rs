//! Norms of several rows by a kernel on GPUs, with what is added to them before.

use mlxcel_models::Norm;
use safetensors::Dtype;

use crate::{
    graph::Tensor,
    kernels::{CudaNormRows, F32Bits, ROW_ELEMENTS, element_number, norm_number},
    layers::{
        builder::Builder,
        linear::{takes_norm, vector},
    },
    types::TensorType,
};

/// A result of a layer that is added to the residual stream, times a factor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addend {
    pub(crate) result: Tensor,
    pub(crate) factor: f64,
}

/// Adds to rows of the residual stream, `[batch, tokens, width]`, and normalizes the sum. Returns the sum, or `x` if nothing is
/// added, and the norm, rounded to a type, or the sum if there is none.
///
/// Returns nothing if the kernel does not do that.
pub(crate) fn norm_rows(
    b: &mut Builder<'_>,
    x: Tensor,
    addend: Option<Addend>,
    layer: Option<(&Norm, Dtype)>,
) -> Option<[Tensor; 2]> {
    let isa = b.numerics.gpu?;
    let shape = b.graph.shape(x).to_vec();
    let &[batch, tokens, width] = shape.as_slice() else { return None };
    let is_known = layer.is_none_or(|(layer, _)| takes_norm(b, layer) && layer.shape() == [width]);
    if !width.is_multiple_of(ROW_ELEMENTS) || !is_known {
        return None;
    }
    let rows = batch * tokens;
    let row_major = |b: &mut Builder<'_>, x| b.graph.reshape(x, &[rows, width]);
    let flat = row_major(b, x);
    let (parts, splits) = match addend {
        None => (flat, 0),
        Some(Addend { result, .. }) => match b.product_parts.get(&result) {
            Some(&parts) => (parts, b.graph.shape(parts)[0]),
            None => (row_major(b, result), 1),
        },
    };
    let ty = layer.map_or(Dtype::F32, |(_, ty)| ty);
    let layer = layer.map(|(layer, _)| layer);
    let weights = layer.into_iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias));
    let vectors: Vec<_> = weights.map(|weight| vector(b, weight)).collect();
    let none = (flat, 0);
    let (first, last) = (*vectors.first().unwrap_or(&none), *vectors.last().unwrap_or(&none));
    let made = |ty, is_made| TensorType::new(ty, if is_made { [rows, width] } else { [1, 1] });
    let call = CudaNormRows {
        x: flat,
        parts,
        norm_weight: first.0,
        norm_bias: last.0,
        sum: made(Dtype::F32, addend.is_some()),
        out: made(ty, layer.is_some()),
        rows,
        width,
        splits,
        norm: layer.map_or(0, |layer| norm_number(layer.kind)),
        norm_type: first.1,
        out_type: element_number(ty),
        epsilon: F32Bits(layer.map_or(0.0, |layer| layer.epsilon)),
        offset: F32Bits(layer.map_or(0.0, |layer| layer.offset)),
        factor: F32Bits(addend.map_or(1.0, |addend| addend.factor)),
    };
    let grid = call.grid();
    let results = b.module.call(&mut b.graph, isa, call, grid);
    let &[sum, out] = results.as_slice() else { return None };
    let sum = if addend.is_some() { b.graph.reshape(sum, &shape) } else { x };
    let normed = if layer.is_some() { b.widened(out, &shape) } else { sum };
    Some([sum, normed])
}
