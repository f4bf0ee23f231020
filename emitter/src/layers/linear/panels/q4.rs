//! Panels of 4-bit weights in groups of 32 inputs, with a scale for each group of an output, see `matmul_q4.c`. Activations
//! are 8-bit groups.
//!
//! Weights are bytes, `[panels, groups, 4, lanes, 4]`, where `lanes` is [`Isa::q4_outputs`]. Byte `[j, lane, e]` of a group
//! holds inputs `4j + e` and `16 + 4j + e`. Scales are `[panels, groups, lanes]`.

use mlxcel_models::Weight;

use super::{
    layout::split_into_panels,
    product::{PackedProduct, ProductInputs},
    rows::quantized_rows,
};
use crate::{
    graph::Tensor,
    kernels::{GatherQ4Panels, Isa, MatmulOperands},
    layers::{
        builder::Builder,
        gather,
        quantization::{self, GROUP},
        weights::{Matrix, Weights},
    },
};

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, inputs: ProductInputs<'_>) -> Tensor {
    let ProductInputs { weights, x, segments } = inputs;
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = weights.size();
    let groups = inputs / GROUP;
    let [w, w_scale] = packed(b, isa, weights);
    let rows = quantized_rows(b, isa, x);
    let operands = MatmulOperands::Q4 { w, w_scale, a: rows[0], a_scale: rows[1], a_start: rows[2] };
    let lanes = isa.q4_outputs();
    let panel_bytes = lanes * groups * (GROUP / 2 + 2);
    let product = PackedProduct { isa, operands, segments, outputs, inputs, lanes, panel_bytes };
    product.call(b, batch, tokens)
}

/// Looks up rows of a weight: `[…]` to `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, ids: Tensor) -> Tensor {
    let [w, w_scale] = packed(b, isa, Weights::Layers(&[weight.into()]));
    let (_, width) = Matrix::from(weight).size();
    gather::call(b, isa, ids, width, |count, out| GatherQ4Panels { w, w_scale, ids, count, out, width })
}

/// Quantizes weights and packs them into panels, with their scales.
fn packed(b: &mut Builder<'_>, isa: Isa, weights: Weights<'_>) -> [Tensor; 2] {
    let outputs = isa.q4_outputs();
    let made = b.packed("q4_panels", weights, outputs, &["scales"], |g, weights| {
        let [bytes, scales] = quantization::quantize_q4(g, weights);
        let [bytes, scales] = [bytes, scales].map(|part| split_into_panels(g, &[part], outputs));
        let &[panels, lanes, groups, _] = g.shape(bytes) else {
            return vec![bytes, scales];
        };
        let quads = g.reshape(bytes, &[panels, lanes, groups, 4, 4]);
        vec![g.transpose(quads, &[0, 2, 3, 1, 4]), g.transpose(scales, &[0, 2, 1])]
    });
    [made[0], made[1]]
}
