//! 8-bit weights with a scale for each output, and rows with a scale each: `[panels, inputs / step, LANES, step]`.

use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{Product, Rows, paneled, places};
use crate::{
    GatherDimensions, Isa, Tensor, TensorType,
    kernels::Executable,
    layers::{Builder, Matrix, quantized, weights::Weights},
};

/// Outputs of a panel.
const LANES: usize = 16;

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, rows: Rows<'_>) -> Tensor {
    let Rows { weights, x, segments } = rows;
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = weights.size();
    let [panels, scales] = packed(b, isa, weights);
    let quantize = Executable {
        isa,
        file: "quantize",
        function: "quantize_rows",
        operands: vec![b.graph.type_of(x)],
        cache: 0..0,
        results: vec![
            TensorType::new(isa.q8_activation(), [batch, tokens, inputs]),
            TensorType::new(Dtype::F32, [batch, tokens]),
        ],
        numbers: 0,
        sizes: vec![inputs],
        items: batch * tokens,
        grain: 1,
    };
    let rows = b.module.call(&mut b.graph, quantize, &[x], &[]);
    let product = Product {
        isa,
        file: "matmul_q8",
        functions: ["matmul_q8", "matmul_q8_experts"],
        segments,
        operands: &[panels, scales, rows[0], rows[1]],
        outputs,
        inputs,
        panel: LANES,
        panel_bytes: LANES * inputs,
    };
    product.call(b, batch, tokens)
}

/// Rows of a weight: `[…]` → `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, rows: Tensor) -> Tensor {
    let [panels, scales] = packed(b, isa, Weights::Layers(&[weight.into()]));
    let ((_, inputs), step) = (Matrix::from(weight).size(), isa.q8_step());
    let g = &mut b.graph;
    let shape = g.shape(rows).to_vec();
    let last = shape.len();
    let indices = places(g, rows, LANES);
    let dims = GatherDimensions {
        offset: &[last, last + 1],
        collapsed_slice: &[0, 2],
        start_index_map: &[0, 2],
        index_vector: last,
    };
    let found = g.gather(panels, indices, &dims, &[1, inputs / step, 1, step]);
    let whole: Vec<_> = shape.iter().copied().chain([inputs]).collect();
    let found = g.reshape(found, &whole);
    let found = g.convert(found, Dtype::F32);
    let outputs = g.shape(scales).iter().product();
    let scales = g.reshape(scales, &[outputs, 1]);
    let scales = g.take_rows(scales, rows);
    let scales = g.reshape(scales, &shape);
    let kept: Vec<_> = (0..last).collect();
    let scales = g.broadcast_in_dim(scales, &whole, &kept);
    g.multiply(found, scales)
}

/// Panels and scales of weights.
fn packed(b: &mut Builder<'_>, isa: Isa, weights: Weights<'_>) -> [Tensor; 2] {
    let step = isa.q8_step();
    let made = b.packed("q8_panels", weights, LANES, &["scales"], |g, weights| {
        let [bytes, scales] = quantized::q8(g, weights);
        let rows = paneled(g, &[bytes], LANES);
        let &[panels, lanes, inputs] = g.shape(rows) else {
            return vec![rows, scales];
        };
        let steps = g.reshape(rows, &[panels, lanes, inputs / step, step]);
        vec![g.transpose(steps, &[0, 2, 1, 3]), scales]
    });
    [made[0], made[1]]
}
