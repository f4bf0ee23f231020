//! Panels of 8-bit weights with a scale for each output: `[panels, inputs / step, LANES, step]`. Activations have a scale for
//! each row.

use mlxcel_models::Weight;

use super::{
    layout::split_into_panels,
    product::{PackedProduct, ProductInputs},
    rows::quantized_rows,
};
use crate::{
    form::Activation,
    graph::Tensor,
    kernels::{GatherPanels, Isa, MatmulOperands, PanelTable},
    layers::{
        builder::Builder,
        gather, quantization,
        weights::{Matrix, Weights},
    },
};

/// Outputs of a panel.
const LANES: usize = 16;

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, inputs: ProductInputs<'_>) -> Tensor {
    let ProductInputs { weights, x, segments } = inputs;
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = weights.size();
    let [w, w_scale] = packed(b, isa, weights);
    let rows = quantized_rows(b, isa, x, Activation::Rows);
    let operands = MatmulOperands::Q8 { w, w_scale, a: rows[0], a_scale: rows[1] };
    let panel_bytes = LANES * inputs;
    let product = PackedProduct { isa, operands, segments, outputs, inputs, lanes: LANES, panel_bytes };
    product.call(b, batch, tokens)
}

/// Looks up rows of a weight: `[…]` to `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, ids: Tensor) -> Tensor {
    let [w, w_scale] = packed(b, isa, Weights::Layers(&[weight.into()]));
    let ((_, width), step) = (Matrix::from(weight).size(), isa.q8_interleave());
    let table = PanelTable::Q8 { w, w_scale };
    gather::call(b, isa, ids, width, |count, out| GatherPanels { table, ids, count, out, width, step })
}

/// Quantizes weights and packs them into panels, with their scales.
fn packed(b: &mut Builder<'_>, isa: Isa, weights: Weights<'_>) -> [Tensor; 2] {
    let step = isa.q8_interleave();
    let made = b.packed("q8_panels", weights, LANES, &["scales"], |g, _, weight| {
        let [bytes, scales] = quantization::quantize_q8(g, weight);
        let rows = split_into_panels(g, bytes, LANES);
        let &[panels, lanes, inputs] = g.shape(rows) else {
            return vec![rows, scales];
        };
        let steps = g.reshape(rows, &[panels, lanes, inputs / step, step]);
        vec![g.transpose(steps, &[0, 2, 1, 3]), scales]
    });
    [made[0], made[1]]
}
