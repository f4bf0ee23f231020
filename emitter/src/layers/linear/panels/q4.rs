//! Panels of 4-bit weights in groups of 32 inputs, with a scale for each group of an output, see `matmul_q4.c`. Activations
//! are 8-bit groups.
//!
//! Weights are bytes, `[panels, groups, 4, lanes, 4]`, where `lanes` is [`Isa::q4_outputs`]. Byte `[j, lane, e]` of a group
//! holds inputs `4j + e` and `16 + 4j + e`. Scales are `[panels, groups, lanes]`.

use mlxcel_models::Weight;

use super::{
    layout::{panel_and_lane, split_into_panels},
    product::{PackedProduct, ProductInputs},
    rows::quantized_rows,
};
use crate::{
    graph::Tensor,
    kernels::{Isa, MatmulOperands},
    layers::{
        builder::Builder,
        quantization::{self, GROUP},
        weights::{Matrix, Weights},
    },
    ops::GatherDimensions,
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
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, rows: Tensor) -> Tensor {
    let [panels, scales] = packed(b, isa, Weights::Layers(&[weight.into()]));
    let groups = Matrix::from(weight).size().1 / GROUP;
    let g = &mut b.graph;
    let shape = g.shape(rows).to_vec();
    let last = shape.len();
    let indices = panel_and_lane(g, rows, isa.q4_outputs());
    let bytes = GatherDimensions {
        offset: &[last, last + 1, last + 2],
        collapsed_slice: &[0, 3],
        start_index_map: &[0, 3],
        index_vector: last,
    };
    let bytes = g.gather(panels, indices, &bytes, &[1, groups, 4, 1, 4]);
    let of_scales = GatherDimensions {
        offset: &[last],
        collapsed_slice: &[0, 2],
        start_index_map: &[0, 2],
        index_vector: last,
    };
    let scales = g.gather(scales, indices, &of_scales, &[1, groups, 1]);
    let whole: Vec<_> = shape.into_iter().chain([groups * GROUP]).collect();
    quantization::dequantize_q4(g, bytes, scales, &whole)
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
