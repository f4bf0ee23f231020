//! Weights as the checkpoint has them: `[panels, inputs, LANES]`, or `[panels, inputs / 2, LANES, 2]` where pairs of bf16
//! are multiplied.

use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{Product, Rows, paneled, places};
use crate::{
    GatherDimensions, Isa, Tensor,
    layers::{Builder, Matrix, weights::Weights},
};

/// Outputs of a panel: two vector registers of `f32` with AVX2, one with AVX-512.
const LANES: usize = 16;

/// Inputs of an output that are multiplied at once, of bf16.
const PAIR: usize = 2;

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, rows: Rows<'_>) -> Tensor {
    let Rows { weights, x, segments } = rows;
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = weights.size();
    let panels = packed(b, isa, weights);
    let stored = b.graph.dtype(panels);
    let by_pairs = by_pairs(b, isa, weights);
    let x = if by_pairs { b.graph.convert(x, Dtype::BF16) } else { x };
    let (file, functions) = match stored {
        Dtype::BF16 if by_pairs => ("matmul_bf16", ["matmul_bf16_pairs", "matmul_bf16_pairs_experts"]),
        Dtype::BF16 => ("matmul_float", ["matmul_bf16", "matmul_bf16_experts"]),
        Dtype::F16 => ("matmul_float", ["matmul_f16", "matmul_f16_experts"]),
        _ => ("matmul_float", ["matmul_f32", "matmul_f32_experts"]),
    };
    let product = Product {
        isa,
        file,
        functions,
        segments,
        operands: &[panels, x],
        outputs,
        inputs,
        panel: LANES,
        panel_bytes: LANES * inputs * stored.bitsize() / 8,
    };
    product.call(b, batch, tokens)
}

/// Rows of a weight: `[…]` → `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, rows: Tensor) -> Tensor {
    let panels = packed(b, isa, Weights::Layers(&[weight.into()]));
    let by_pairs = by_pairs(b, isa, Weights::Layers(&[weight.into()]));
    let (_, inputs) = Matrix::from(weight).size();
    let g = &mut b.graph;
    let shape = g.shape(rows).to_vec();
    let last = shape.len();
    let indices = places(g, rows, LANES);
    let (offset, sizes): (&[usize], &[usize]) =
        if by_pairs { (&[last, last + 1], &[1, inputs / PAIR, 1, PAIR]) } else { (&[last], &[1, inputs, 1]) };
    let dims =
        GatherDimensions { offset, collapsed_slice: &[0, 2], start_index_map: &[0, 2], index_vector: last };
    let found = g.gather(panels, indices, &dims, sizes);
    let whole: Vec<_> = shape.into_iter().chain([inputs]).collect();
    let found = if by_pairs { g.reshape(found, &whole) } else { found };
    g.convert(found, Dtype::F32)
}

/// Whether products with these weights are in bf16 on both sides. Weights of an odd number of inputs have none to pair
/// the last with.
fn by_pairs(b: &Builder<'_>, isa: Isa, weights: Weights<'_>) -> bool {
    let in_bf16 = |weight: &Weight| b.dtype(weight) == Dtype::BF16;
    isa.multiplies_bf16()
        && b.precision == Dtype::BF16
        && weights.tensors().into_iter().all(in_bf16)
        && weights.size().1.is_multiple_of(PAIR)
}

fn packed(b: &mut Builder<'_>, isa: Isa, weights: Weights<'_>) -> Tensor {
    let by_pairs = by_pairs(b, isa, weights);
    let made = b.packed("panels", weights, LANES, &[], |g, weights| {
        let rows = paneled(g, weights, LANES);
        let &[panels, lanes, inputs] = g.shape(rows) else {
            return vec![rows];
        };
        if !by_pairs {
            return vec![g.transpose(rows, &[0, 2, 1])];
        }
        let pairs = g.reshape(rows, &[panels, lanes, inputs / PAIR, PAIR]);
        vec![g.transpose(pairs, &[0, 2, 1, 3])]
    });
    made[0]
}
