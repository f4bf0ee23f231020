//! 4-bit weights in groups of 32 inputs, each of an output with a scale, and rows in 8-bit groups: see `matmul_q4.c`.
//!
//! Weights are `[panels, groups, 4, LANES, 4]` bytes, of which byte `[j, lane, e]` of a group holds inputs `4j + e` and
//! `16 + 4j + e`; scales are `[panels, groups, LANES]`.

use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{Product, Rows, paneled, places};
use crate::{
    GatherDimensions, Isa, Tensor, TensorType,
    kernels::Executable,
    layers::{
        Builder, Matrix,
        quantized::{self, GROUP},
        weights::Weights,
    },
};

/// Outputs of a panel.
const LANES: usize = 8;

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, rows: Rows<'_>) -> Tensor {
    let Rows { weights, x, segments } = rows;
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = weights.size();
    let groups = inputs / GROUP;
    let [panels, scales] = packed(b, weights);
    let of_groups = TensorType::new(Dtype::F32, [batch, tokens, groups]);
    let quantize = Executable {
        isa,
        file: "quantize",
        function: "quantize_groups",
        operands: vec![b.graph.type_of(x)],
        cache: 0..0,
        results: vec![TensorType::new(Dtype::I8, [batch, tokens, inputs]), of_groups.clone(), of_groups],
        numbers: 0,
        sizes: vec![inputs],
        items: batch * tokens,
        grain: 1,
    };
    let rows = b.module.call(&mut b.graph, quantize, &[x], &[]);
    let product = Product {
        isa,
        file: "matmul_q4",
        functions: ["matmul_q4", "matmul_q4_experts"],
        segments,
        operands: &[panels, scales, rows[0], rows[1], rows[2]],
        outputs,
        inputs,
        panel: LANES,
        panel_bytes: LANES * groups * (GROUP / 2 + 2),
    };
    product.call(b, batch, tokens)
}

/// Rows of a weight: `[…]` → `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, weight: &Weight, rows: Tensor) -> Tensor {
    let [panels, scales] = packed(b, Weights::Layers(&[weight.into()]));
    let groups = Matrix::from(weight).size().1 / GROUP;
    let g = &mut b.graph;
    let shape = g.shape(rows).to_vec();
    let last = shape.len();
    let indices = places(g, rows, LANES);
    let bytes = GatherDimensions {
        offset: &[last, last + 1, last + 2],
        collapsed_slice: &[0, 3],
        start_index_map: &[0, 3],
        index_vector: last,
    };
    let bytes = g.gather(panels, indices, &bytes, &[1, groups, 4, 1, 4]);
    let of_groups = GatherDimensions {
        offset: &[last],
        collapsed_slice: &[0, 2],
        start_index_map: &[0, 2],
        index_vector: last,
    };
    let scales = g.gather(scales, indices, &of_groups, &[1, groups, 1]);
    let whole: Vec<_> = shape.into_iter().chain([groups * GROUP]).collect();
    quantized::q4_rows(g, bytes, scales, &whole)
}

/// Panels and scales of weights.
fn packed(b: &mut Builder<'_>, weights: Weights<'_>) -> [Tensor; 2] {
    let made = b.packed("q4_panels", weights, LANES, &["scales"], |g, weights| {
        let [bytes, scales] = quantized::q4(g, weights);
        let [bytes, scales] = [bytes, scales].map(|part| paneled(g, &[part], LANES));
        let &[panels, lanes, groups, _] = g.shape(bytes) else {
            return vec![bytes, scales];
        };
        let quads = g.reshape(bytes, &[panels, lanes, groups, 4, 4]);
        vec![g.transpose(quads, &[0, 2, 3, 1, 4]), g.transpose(scales, &[0, 2, 1])]
    });
    [made[0], made[1]]
}
