//! Norms of rows by a kernel on GPUs, with what is added to them before.

use mlxcel_models::{Norm, NormKind};
use safetensors::Dtype;

use crate::{
    graph::Tensor,
    kernels::{AfterNorm, CudaNormRows, F32Bits, ROW_ELEMENTS, element_number, row_norm_number},
    layers::{
        addend::Addend,
        builder::Builder,
        linear::{takes_norm, vector},
    },
    types::TensorType,
};

/// Returns whether the kernel adds to rows as wide as those of `x`.
pub(crate) fn adds_rows(b: &Builder<'_>, x: Tensor) -> bool {
    let width = b.graph.shape(x).last().copied().unwrap_or(1);
    b.numerics.gpu.is_some() && width.is_multiple_of(ROW_ELEMENTS)
}

/// Returns whether the kernel adds norms of `x` to the residual stream.
pub(crate) fn adds_norm(b: &Builder<'_>, layer: &Norm, x: Tensor) -> bool {
    let width = b.graph.shape(x).last().copied();
    let is_of_rows = width.is_some_and(|width| layer.shape() == [width]);
    adds_rows(b, x) && layer.kind == NormKind::Rms && takes_norm(b, layer) && is_of_rows
}

/// Adds to rows of the residual stream, `[batch, tokens, width]`, and normalizes the sum. Returns the sum, or `x` if nothing is
/// added, and the norm, rounded to a type, or the sum if there is none.
///
/// Returns nothing if the kernel does not do that.
pub(crate) fn norm_rows(
    b: &mut Builder<'_>,
    x: Tensor,
    addend: Option<&Addend>,
    layer: Option<(&Norm, Dtype)>,
) -> Option<[Tensor; 2]> {
    let isa = b.numerics.gpu?;
    let shape = b.graph.shape(x).to_vec();
    let &[batch, tokens, width] = shape.as_slice() else { return None };
    let is_known = layer.is_none_or(|(layer, _)| takes_norm(b, layer) && layer.shape() == [width]);
    if !adds_rows(b, x) || !is_known {
        return None;
    }
    let rows = batch * tokens;
    let flat = b.graph.reshape(x, &[rows, width]);
    let (parts, splits) = addend.map_or((flat, 0), |addend| parts(b, addend.result, [rows, width]));
    let gate = addend.and_then(|addend| addend.gate);
    let gates = gate.map_or(flat, |gate| b.graph.reshape(gate, &[rows]));
    let (after_weight, after) = after(b, addend.and_then(|addend| addend.after.as_ref()), flat);
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
        gates,
        after_weight,
        norm_weight: first.0,
        norm_bias: last.0,
        sum: made(Dtype::F32, addend.is_some()),
        out: made(ty, layer.is_some()),
        rows,
        width,
        splits,
        gated: gate.is_some(),
        norm: layer.map_or(0, row_norm_number),
        norm_type: first.1,
        out_type: element_number(ty),
        epsilon: F32Bits(layer.map_or(0.0, |layer| layer.epsilon)),
        offset: F32Bits(layer.map_or(0.0, |layer| layer.offset)),
        after,
        factor: F32Bits(addend.map_or(1.0, |addend| addend.factor)),
    };
    let grid = call.grid();
    let results = b.module.call(&mut b.graph, isa, call, grid);
    let &[sum, out] = results.as_slice() else { return None };
    let sum = if addend.is_some() { b.graph.reshape(sum, &shape) } else { x };
    let normed = if layer.is_some() { b.widened(out, &shape) } else { sum };
    Some([sum, normed])
}

/// Returns what is added, of `[rows, width]`, in parts that the kernel sums, and their number.
fn parts(b: &mut Builder<'_>, result: Tensor, shape: [usize; 2]) -> (Tensor, usize) {
    match b.product_parts.get(&result) {
        Some(&parts) => (parts, b.graph.shape(parts)[0]),
        None => (b.graph.reshape(result, &shape), 1),
    }
}

/// Returns the weight of the norm of what is added, and its numbers. Without one, the weight is `none`.
fn after(b: &mut Builder<'_>, layer: Option<&Norm>, none: Tensor) -> (Tensor, AfterNorm) {
    let weight = layer.and_then(|layer| layer.weights.first());
    let (weight, after_type) = weight.map_or((none, 0), |weight| vector(b, weight));
    let after = AfterNorm {
        after: layer.map_or(0, row_norm_number),
        after_type,
        after_epsilon: F32Bits(layer.map_or(0.0, |layer| layer.epsilon)),
        after_offset: F32Bits(layer.map_or(0.0, |layer| layer.offset)),
    };
    (weight, after)
}
