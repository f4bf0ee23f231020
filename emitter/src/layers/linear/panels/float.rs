//! Panels of unquantized weights: `[panels, inputs, LANES]`, or `[panels, inputs / 2, LANES, 2]` for pairs of bf16.

use mlxcel_models::Weight;
use safetensors::Dtype;

use super::product::{PackedProduct, ProductInputs};
use crate::{
    graph::Tensor,
    kernels::{GatherPanels, Isa, MatmulOperands, PackPairs, PackPanels, PanelTable, WeightRows},
    layers::{
        builder::Builder,
        gather,
        packing_kernels::PackingKernels,
        weights::{Matrix, Weights},
    },
    types::TensorType,
};

/// Outputs of a panel: two vector registers of `f32` with AVX2, one with AVX-512.
pub(super) const LANES: usize = 16;

/// The number of adjacent bf16 inputs that are multiplied at once.
pub(super) const PAIR: usize = 2;

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, inputs: ProductInputs<'_>) -> Tensor {
    let ProductInputs { weights, x, segments } = inputs;
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = weights.size();
    let w = packed(b, isa, weights);
    let stored = b.graph.dtype(w);
    let in_pairs = multiplies_pairs(b, isa, weights);
    let a = if in_pairs { b.graph.convert(x, Dtype::BF16) } else { x };
    let operands = match stored {
        Dtype::BF16 if in_pairs => MatmulOperands::Bf16Pairs { w, a },
        Dtype::BF16 => MatmulOperands::Bf16 { w, a },
        Dtype::F16 => MatmulOperands::F16 { w, a },
        _ => MatmulOperands::F32 { w, a },
    };
    let panel_bytes = LANES * inputs * stored.bitsize() / 8;
    let product = PackedProduct { isa, operands, segments, outputs, inputs, lanes: LANES, panel_bytes };
    product.call(b, batch, tokens)
}

/// Looks up rows of a weight: `[…]` to `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, ids: Tensor) -> Tensor {
    let w = packed(b, isa, Weights::Layers(&[weight.into()]));
    let in_pairs = multiplies_pairs(b, isa, Weights::Layers(&[weight.into()]));
    let (_, width) = Matrix::from(weight).size();
    let table = match b.graph.dtype(w) {
        Dtype::BF16 => PanelTable::Bf16 { w },
        Dtype::F16 => PanelTable::F16 { w },
        _ => PanelTable::F32 { w },
    };
    let step = if in_pairs { PAIR } else { 1 };
    gather::call(b, isa, ids, width, |count, out| GatherPanels { table, ids, count, out, width, step })
}

/// Returns whether products with these weights multiply pairs of bf16. An odd number of inputs cannot be paired.
fn multiplies_pairs(b: &Builder<'_>, isa: Isa, weights: Weights<'_>) -> bool {
    let in_bf16 = |weight: &Weight| b.dtype(weight) == Dtype::BF16;
    isa.multiplies_bf16()
        && b.precision == Dtype::BF16
        && weights.tensors().into_iter().all(in_bf16)
        && weights.size().1.is_multiple_of(PAIR)
}

/// Packs weights into panels.
fn packed(b: &mut Builder<'_>, isa: Isa, weights: Weights<'_>) -> Tensor {
    let in_pairs = multiplies_pairs(b, isa, weights);
    let made = b.packed("panels", weights, LANES, &[], |g, kernels, weight| {
        let TensorType { dtype, shape } = g.type_of(weight);
        let (Some(w), &[rows, inputs]) = (WeightRows::new(weight, dtype), shape.as_slice()) else {
            let problem = format!("found {dtype:?} of shape {shape:?}, expected a matrix of floats");
            return vec![g.fail("panels", problem)];
        };
        let panels = rows.div_ceil(LANES);
        let grid = PackingKernels::grid(panels, LANES * inputs);
        if in_pairs {
            let k = inputs / PAIR;
            let out = TensorType::new(dtype, [panels, k, LANES, PAIR]);
            return kernels.call(g, PackPairs { w: weight, out, rows, k }, grid);
        }
        let out = TensorType::new(dtype, [panels, inputs, LANES]);
        kernels.call(g, PackPanels { w, out, rows, k: inputs }, grid)
    });
    made[0]
}
