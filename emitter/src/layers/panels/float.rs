//! Weights as the checkpoint has them: `[panels, inputs, LANES]`.

use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{Product, paneled, places, size};
use crate::{GatherDimensions, Isa, Tensor, layers::Builder};

/// Outputs of a panel: two vector registers of `f32` with AVX2.
const LANES: usize = 16;

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, weights: &[&Weight], x: Tensor) -> Tensor {
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = size(weights);
    let panels = packed(b, weights);
    let stored = b.graph.dtype(panels);
    let product = Product {
        isa,
        file: "matmul_float",
        function: match stored {
            Dtype::BF16 => "matmul_bf16",
            Dtype::F16 => "matmul_f16",
            _ => "matmul_f32",
        },
        operands: &[panels, x],
        outputs,
        inputs,
        panel: LANES,
        panel_bytes: LANES * inputs * stored.bitsize() / 8,
    };
    product.call(b, batch, tokens)
}

/// Rows of a weight: `[…]` → `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, weight: &Weight, rows: Tensor) -> Tensor {
    let panels = packed(b, &[weight]);
    let (_, inputs) = size(&[weight]);
    let g = &mut b.graph;
    let last = g.shape(rows).len();
    let indices = places(g, rows, LANES);
    let dims = GatherDimensions {
        offset: &[last],
        collapsed_slice: &[0, 2],
        start_index_map: &[0, 2],
        index_vector: last,
    };
    let found = g.gather(panels, indices, &dims, &[1, inputs, 1]);
    g.convert(found, Dtype::F32)
}

fn packed(b: &mut Builder<'_>, weights: &[&Weight]) -> Tensor {
    let made = b.packed("panels", weights, &[], |g, weights| {
        let rows = paneled(g, weights, LANES);
        vec![g.transpose(rows, &[0, 2, 1])]
    });
    made[0]
}
