//! Linear layers and embeddings.

use mlxcel_models::{Embedding, Linear};
use safetensors::Dtype;

use super::Builder;
use crate::{DotDimensions, Products, Tensor};

/// Rows whose sums a product keeps in registers: with 8 lanes, half of the 16 registers of AVX2. Measured on Zen 3 at
/// 256 × 2048 × 8192 in bf16, 2 threads: 8 by 8 120 to 132 GFLOP/s, 12 by 8 107 to 125, 16 by 8 103 to 117, 4 by 16 90.
const TILE_ROWS: usize = 8;

/// `x · weightᵀ + bias`: `[…, inputs]` → `[…, outputs]` in `f32`.
pub(crate) fn linear(b: &mut Builder<'_>, layer: &Linear, x: Tensor) -> Tensor {
    let [y] = linears(b, [layer], x);
    y
}

/// Several linear layers of one input, as one product where the target reads weights that are packed.
pub(crate) fn linears<const N: usize>(b: &mut Builder<'_>, layers: [&Linear; N], x: Tensor) -> [Tensor; N] {
    let shape = b.graph.shape(x).to_vec();
    let inputs = shape.last().copied().unwrap_or(1);
    let rows = shape.iter().product::<usize>() / inputs.max(1);
    let x = b.graph.reshape(x, &[rows, inputs]);
    let products = match b.numerics.products {
        Products::Packed { lanes } if packable(b, &layers, lanes) => packed(b, layers, x, lanes),
        Products::Packed { lanes } => layers.map(|layer| {
            if packable(b, &[layer], lanes) { packed(b, [layer], x, lanes)[0] } else { dot(b, layer, x) }
        }),
        Products::Native | Products::Widened => layers.map(|layer| dot(b, layer, x)),
    };
    let mut finish = |layer: &Linear, mut y| {
        if let Some(bias) = &layer.bias {
            let bias = b.weight_f32(bias);
            let bias = b.graph.broadcast_in_dim(bias, &[rows, layer.outputs()], &[1]);
            y = b.graph.add(y, bias);
        }
        let mut shape = shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = layer.outputs();
        }
        b.graph.reshape(y, &shape)
    };
    std::array::from_fn(|index| finish(layers[index], products[index]))
}

/// Whether the layers' weights can be packed into one: whole panels, of one element type.
fn packable(b: &Builder<'_>, layers: &[&Linear], lanes: usize) -> bool {
    let whole = |layer: &&Linear| lanes > 0 && layer.outputs().is_multiple_of(lanes);
    let dtype = |layer: &Linear| b.dtype(&layer.weight);
    layers.iter().all(whole) && layers.windows(2).all(|pair| dtype(pair[0]) == dtype(pair[1]))
}

/// `[rows, inputs]` → `[rows, outputs]` as a dot product, or a sum of them over parts of the inputs.
fn dot(b: &mut Builder<'_>, layer: &Linear, x: Tensor) -> Tensor {
    let operands = b.operands(&layer.weight, x);
    let g = &mut b.graph;
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
    let products = operands.into_iter().map(|(x, weight)| g.dot_general(x, weight, &dims, Dtype::F32));
    let products: Vec<_> = products.collect();
    products.into_iter().reduce(|sum, product| g.add(sum, product)).unwrap_or(x)
}

/// `[rows, inputs]` → `[rows, outputs]` for each layer, over their weights packed as `[outputs / lanes, inputs, lanes]` one
/// after the other: one vector register's outputs at a time for each tile of rows.
fn packed<const N: usize>(b: &mut Builder<'_>, layers: [&Linear; N], x: Tensor, lanes: usize) -> [Tensor; N] {
    let inputs = b.graph.shape(x).get(1).copied().unwrap_or(1);
    let panels = layers.map(|layer| layer.outputs() / lanes);
    let shape = [panels.iter().sum(), inputs, lanes];
    // Not as ops of the function that the compiler would hoist: it moves transposes about until nothing is packed.
    let weight = b.computed(layers.map(|layer| &layer.weight), "packed", &shape, |g, weights| {
        let pack = |(&weight, panels): (&Tensor, usize)| {
            let weight = g.reshape(weight, &[panels, lanes, inputs]);
            g.transpose(weight, &[0, 2, 1])
        };
        let packed: Vec<_> = weights.iter().zip(panels).map(pack).collect();
        if let &[only] = packed.as_slice() { only } else { g.concatenate(&packed, 0) }
    });
    let g = &mut b.graph;
    let rows = g.shape(x).first().copied().unwrap_or(1);
    let tile = 1 << rows.trailing_zeros().min(TILE_ROWS.trailing_zeros());
    let x = g.reshape(x, &[rows / tile, tile, inputs]);
    let x = g.transpose(x, &[0, 2, 1]);
    let y = g.mmt4d(x, weight);
    let mut first = 0;
    panels.map(|panels| {
        let y = g.slice_dimension(y, 1, first, first + panels);
        first += panels;
        let y = g.transpose(y, &[0, 2, 1, 3]);
        g.reshape(y, &[rows, panels * lanes])
    })
}

/// Rows of the table for token ids: `[…]` → `[…, hidden]` in `f32`.
pub(crate) fn embedding(b: &mut Builder<'_>, layer: &Embedding, tokens: Tensor) -> Tensor {
    let table = b.stored(&layer.weight);
    let rows = b.graph.take_rows(table, tokens);
    let rows = b.widen(&layer.weight, rows, Dtype::F32);
    // Fused with the first norm, the gathered rows would go to the stack, which is too small for them.
    b.graph.barrier(rows)
}
