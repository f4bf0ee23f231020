//! Linear layers and embeddings.

use mlxcel_models::{Embedding, Linear};
use safetensors::Dtype;

use super::{Builder, panels, quantized};
use crate::{DotDimensions, Products, Quant, Tensor};

/// A linear layer with the name that errors give it.
pub(crate) type Named<'l> = (&'static str, &'l Linear);

/// `x · weightᵀ + bias`: `[batch, tokens, inputs]` → `[batch, tokens, outputs]` in `f32`.
pub(crate) fn linear(b: &mut Builder<'_>, layer: Named<'_>, x: Tensor) -> Tensor {
    let [y] = linears(b, [layer], x);
    y
}

/// Several linear layers of one input, as one product where the target reads packed weights.
pub(crate) fn linears<const N: usize>(b: &mut Builder<'_>, layers: [Named<'_>; N], x: Tensor) -> [Tensor; N] {
    let &[batch, tokens, inputs] = b.graph.shape(x) else {
        return layers.map(|_| x);
    };
    if let Some((name, layer)) = layers.iter().find(|(_, layer)| layer.inputs() != inputs) {
        let problem = format!("found a weight of shape {:?}, expected {inputs} inputs", layer.weight.shape);
        return b.scope(name, |b| layers.map(|_| b.graph.fail("linear", problem.as_str())));
    }
    let products = match b.numerics.products {
        Products::Kernels(isa) if alike(b, &layers) => panels::products(b, isa, layers, x),
        Products::Kernels(isa) => layers.map(|layer| panels::products(b, isa, [layer], x)[0]),
        Products::Native | Products::Widened => layers.map(|layer| dot(b, layer, x)),
    };
    let shape = |layer: &Linear| [batch, tokens, layer.outputs()];
    std::array::from_fn(|index| {
        let ((name, layer), product) = (layers[index], products[index]);
        b.scope(name, |b| {
            let mut y = product;
            if let Some(bias) = &layer.bias {
                let bias = b.weight_f32(bias);
                let bias = b.graph.broadcast_in_dim(bias, &shape(layer), &[2]);
                y = b.graph.add(y, bias);
            }
            y
        })
    })
}

/// Whether the layers' weights are of one element type.
fn alike(b: &Builder<'_>, layers: &[Named<'_>]) -> bool {
    let dtype = |(_, layer): Named<'_>| b.dtype(&layer.weight);
    layers.windows(2).all(|pair| dtype(pair[0]) == dtype(pair[1]))
}

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs]` as a dot product, or a sum of them over parts of the inputs.
fn dot(b: &mut Builder<'_>, (name, layer): Named<'_>, x: Tensor) -> Tensor {
    let &[batch, tokens, inputs] = b.graph.shape(x) else {
        return x;
    };
    b.scope(name, |b| {
        let x = b.graph.reshape(x, &[batch * tokens, inputs]);
        let product = match b.quant {
            Quant::None => plain_dot(b, layer, x),
            Quant::Q8 | Quant::Q4 => quantized::product(b, &layer.weight, x),
        };
        b.graph.reshape(product, &[batch, tokens, layer.outputs()])
    })
}

fn plain_dot(b: &mut Builder<'_>, layer: &Linear, x: Tensor) -> Tensor {
    let operands = b.operands(&layer.weight, x);
    let g = &mut b.graph;
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
    let products = operands.into_iter().map(|(x, weight)| g.dot_general(x, weight, &dims, Dtype::F32));
    let products: Vec<_> = products.collect();
    products.into_iter().reduce(|sum, product| g.add(sum, product)).unwrap_or(x)
}

/// Rows of the table for token ids: `[…]` → `[…, hidden]` in `f32`.
pub(crate) fn embedding(b: &mut Builder<'_>, layer: &Embedding, tokens: Tensor) -> Tensor {
    let rows = match (b.numerics.products, b.quant) {
        (Products::Kernels(isa), _) => panels::rows(b, isa, &layer.weight, tokens),
        (_, Quant::Q8 | Quant::Q4) => quantized::rows(b, &layer.weight, tokens),
        (Products::Native | Products::Widened, Quant::None) => {
            let table = b.stored(&layer.weight);
            let rows = b.graph.take_rows(table, tokens);
            b.widen(&layer.weight, rows, Dtype::F32)
        }
    };
    // Fused with the first norm, the gathered rows would go to the stack, which is too small for them.
    b.graph.barrier(rows)
}
