//! Linear layers and embeddings.

use mlxcel_models::{Embedding, Linear};
use safetensors::Dtype;

use super::Builder;
use crate::{DotDimensions, Products, Reduction, Tensor};

/// `x · weightᵀ + bias`: `[…, inputs]` → `[…, outputs]` in `f32`.
pub(crate) fn linear(b: &mut Builder<'_>, layer: &Linear, x: Tensor) -> Tensor {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let mut shape = b.graph.shape(x).to_vec();
    let rows = shape.iter().product::<usize>() / inputs.max(1);
    let x = b.graph.reshape(x, &[rows, inputs]);
    let mut y = match b.numerics.products {
        Products::Packed { lanes } if lanes > 0 && outputs.is_multiple_of(lanes) => {
            packed(b, layer, x, lanes)
        }
        _ => dot(b, layer, x),
    };
    if let Some(bias) = &layer.bias {
        let bias = b.weight_f32(bias);
        let bias = b.graph.broadcast_in_dim(bias, &[rows, outputs], &[1]);
        y = b.graph.add(y, bias);
    }
    if let Some(last) = shape.last_mut() {
        *last = outputs;
    }
    b.graph.reshape(y, &shape)
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

/// `[rows, inputs]` → `[rows, outputs]` over a weight packed as `[outputs / lanes, inputs, lanes]`.
fn packed(b: &mut Builder<'_>, layer: &Linear, x: Tensor, lanes: usize) -> Tensor {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let panels = outputs / lanes;
    // Not as ops of the function that the compiler would hoist: it moves transposes about until nothing is packed.
    let weight = b.computed(&layer.weight, "packed", &[panels, inputs, lanes], |g, weight| {
        let weight = g.reshape(weight, &[panels, lanes, inputs]);
        g.transpose(weight, &[0, 2, 1])
    });
    let weight = b.widen(&layer.weight, weight, Dtype::F32);
    let g = &mut b.graph;
    let rows = g.shape(x).first().copied().unwrap_or(1);
    // A single row as a product of its own rank: with a row dimension of size 1 the compiler vectorises less well.
    let (shape, at): (&[usize], _) =
        if rows == 1 { (&[panels, inputs, lanes], 0) } else { (&[rows, panels, inputs, lanes], 1) };
    let x = if rows == 1 { g.reshape(x, &[inputs]) } else { x };
    let x_at: Vec<_> = if rows == 1 { vec![1] } else { vec![0, 2] };
    let x = g.broadcast_in_dim(x, shape, &x_at);
    let weight = g.broadcast_in_dim(weight, shape, &[at, at + 1, at + 2]);
    let products = g.multiply(x, weight);
    let sums = g.reduce(products, Reduction::Sum, &[at + 1]);
    g.reshape(sums, &[rows, outputs])
}

/// Rows of the table for token ids: `[…]` → `[…, hidden]` in `f32`.
pub(crate) fn embedding(b: &mut Builder<'_>, layer: &Embedding, tokens: Tensor) -> Tensor {
    let table = b.stored(&layer.weight);
    let rows = b.graph.take_rows(table, tokens);
    let rows = b.widen(&layer.weight, rows, Dtype::F32);
    // Fused with the first norm, the gathered rows would go to the stack, which is too small for them.
    b.graph.barrier(rows)
}
