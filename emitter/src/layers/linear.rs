//! Linear layers and embeddings.

use mlxcel_models::{Embedding, Linear};
use safetensors::Dtype;

use super::Builder;
use crate::{DotDimensions, Products, Tensor};

/// Rows whose sums a product keeps in registers: with 8 lanes, half of the 16 registers of AVX2. Measured on Zen 3 at
/// 256 × 2048 × 8192 in bf16, 2 threads: 8 by 8 120 to 132 GFLOP/s, 12 by 8 107 to 125, 16 by 8 103 to 117, 4 by 16 90.
const TILE_ROWS: usize = 8;

/// A linear layer with the name that errors give it.
pub(crate) type Named<'l> = (&'static str, &'l Linear);

/// `x · weightᵀ + bias`: `[…, inputs]` → `[…, outputs]` in `f32`.
pub(crate) fn linear(b: &mut Builder<'_>, layer: Named<'_>, x: Tensor) -> Tensor {
    let [y] = linears(b, [layer], x);
    y
}

/// Several linear layers of one input, as one product where the target reads weights that are packed.
pub(crate) fn linears<const N: usize>(b: &mut Builder<'_>, layers: [Named<'_>; N], x: Tensor) -> [Tensor; N] {
    let shape = b.graph.shape(x).to_vec();
    let inputs = shape.last().copied().unwrap_or(1);
    let rows = shape.iter().product::<usize>() / inputs.max(1);
    let x = b.graph.reshape(x, &[rows, inputs]);
    if let Some((name, layer)) = layers.iter().find(|(_, layer)| layer.inputs() != inputs) {
        let problem = format!("found a weight of shape {:?}, expected {inputs} inputs", layer.weight.shape);
        return b.scope(name, |b| layers.map(|_| b.graph.fail("linear", problem.as_str())));
    }
    let products = match b.numerics.products {
        Products::Packed { lanes } if packable(b, &layers, lanes) => packed(b, layers, x, lanes),
        Products::Packed { lanes } => layers.map(|layer| {
            if packable(b, &[layer], lanes) { packed(b, [layer], x, lanes)[0] } else { dot(b, layer, x) }
        }),
        Products::Native | Products::Widened => layers.map(|layer| dot(b, layer, x)),
    };
    std::array::from_fn(|index| {
        let ((name, layer), product) = (layers[index], products[index]);
        b.scope(name, |b| {
            let mut y = product;
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
        })
    })
}

/// Whether the layers' weights can be packed into one: whole panels, of one element type.
fn packable(b: &Builder<'_>, layers: &[Named<'_>], lanes: usize) -> bool {
    let whole = |(_, layer): &Named<'_>| lanes > 0 && layer.outputs().is_multiple_of(lanes);
    let dtype = |(_, layer): Named<'_>| b.dtype(&layer.weight);
    layers.iter().all(whole) && layers.windows(2).all(|pair| dtype(pair[0]) == dtype(pair[1]))
}

/// `[rows, inputs]` → `[rows, outputs]` as a dot product, or a sum of them over parts of the inputs.
fn dot(b: &mut Builder<'_>, (name, layer): Named<'_>, x: Tensor) -> Tensor {
    b.scope(name, |b| {
        let operands = b.operands(&layer.weight, x);
        let g = &mut b.graph;
        let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
        let products = operands.into_iter().map(|(x, weight)| g.dot_general(x, weight, &dims, Dtype::F32));
        let products: Vec<_> = products.collect();
        products.into_iter().reduce(|sum, product| g.add(sum, product)).unwrap_or(x)
    })
}

/// `[rows, inputs]` → `[rows, outputs]` for each layer, over their weights packed as `[outputs / lanes, inputs, lanes]` one
/// after the other: one vector register's outputs at a time for each tile of rows.
fn packed<const N: usize>(
    b: &mut Builder<'_>,
    layers: [Named<'_>; N],
    x: Tensor,
    lanes: usize,
) -> [Tensor; N] {
    b.scope(&layers.map(|(name, _)| name).join("+"), |b| {
        let layers = layers.map(|(_, layer)| layer);
        let panels = layers.map(|layer| layer.outputs() / lanes);
        let weight = packed_weights(b, layers, panels, lanes);
        let g = &mut b.graph;
        let &[rows, inputs] = g.shape(x) else {
            return layers.map(|_| x);
        };
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
    })
}

/// The layers' weights as `[panels, inputs, lanes]`, one after the other.
fn packed_weights<const N: usize>(
    b: &mut Builder<'_>,
    layers: [&Linear; N],
    panels: [usize; N],
    lanes: usize,
) -> Tensor {
    let inputs = layers.first().map_or(0, |layer| layer.inputs());
    let shape = [panels.iter().sum(), inputs, lanes];
    // Not as ops of the function that the compiler would hoist: it moves transposes about until nothing is packed.
    b.computed(layers.map(|layer| &layer.weight), "packed", &shape, |g, weights| {
        let pack = |(&weight, panels): (&Tensor, usize)| {
            let weight = g.reshape(weight, &[panels, lanes, inputs]);
            g.transpose(weight, &[0, 2, 1])
        };
        let packed: Vec<_> = weights.iter().zip(panels).map(pack).collect();
        if let &[only] = packed.as_slice() { only } else { g.concatenate(&packed, 0) }
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
