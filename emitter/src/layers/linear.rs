//! Linear layers and embeddings.

use mlxcel_artifacts::Quant;
use mlxcel_models::{Embedding, Linear, Part, Weight};
use safetensors::Dtype;

use super::{Builder, Matrix, matvec, norm::norm, panels, quantized};
use crate::{DotDimensions, Graph, Products, Tensor};

/// A linear layer with the name that errors give it.
pub(crate) type Named<'l> = (&'static str, &'l Linear);

/// `x · weightᵀ + bias`: `[batch, tokens, inputs]` → `[batch, tokens, outputs]` in `f32`.
pub(crate) fn linear(b: &mut Builder<'_>, layer: Named<'_>, x: Tensor) -> Tensor {
    let [y] = linears(b, [layer], x);
    y
}

/// Several linear layers of one input, as one product where the target reads packed weights. Those that share a tensor are
/// cut from its product.
pub(crate) fn linears<const N: usize>(b: &mut Builder<'_>, layers: [Named<'_>; N], x: Tensor) -> [Tensor; N] {
    let &[_, _, inputs] = b.graph.shape(x) else {
        return layers.map(|_| x);
    };
    if let Some((name, layer)) = layers.iter().find(|(_, layer)| layer.inputs() != inputs) {
        let problem = format!("found a weight of shape {:?}, expected {inputs} inputs", layer.weight.shape);
        return b.scope(name, |b| layers.map(|_| b.graph.fail("linear", problem.as_str())));
    }
    let (firsts, places) = tensors_of(layers.iter().map(|(_, layer)| *layer));
    let tensors: Vec<_> = firsts.into_iter().map(|first| layers[first]).collect();
    let products = match (b.numerics.products, matvec::isa(b, &tensors, x)) {
        (_, Some(isa)) => matvec::products(b, isa, &tensors, x),
        (Products::Kernels(isa), None) if alike(b, &tensors) => panels::products(b, isa, &tensors, x),
        (Products::Kernels(isa), None) => {
            tensors.iter().flat_map(|&tensor| panels::products(b, isa, &[tensor], x)).collect()
        }
        (Products::Native | Products::Widened, None) => {
            tensors.iter().map(|&tensor| b.scope(tensor.0, |b| dot(b, tensor.1, x))).collect()
        }
    };
    let whole: Vec<_> = tensors.iter().zip(products).map(|(tensor, y)| biased(b, *tensor, y)).collect();
    std::array::from_fn(|index| {
        let (name, layer) = layers[index];
        b.scope(name, |b| part(&mut b.graph, layer, whole[places[index]]))
    })
}

/// The first layer of each tensor, and for every layer which of those has its tensor.
pub(super) fn tensors_of<'l>(layers: impl Iterator<Item = &'l Linear>) -> (Vec<usize>, Vec<usize>) {
    let (mut firsts, mut tensors) = (Vec::new(), Vec::new());
    let mut place = |(index, layer): (usize, &'l Linear)| {
        let known = tensors.iter().position(|weight| *weight == &layer.weight);
        known.unwrap_or_else(|| {
            firsts.push(index);
            tensors.push(&layer.weight);
            tensors.len() - 1
        })
    };
    let places = layers.enumerate().map(&mut place).collect();
    (firsts, places)
}

/// Whether the layers' weights are of one element type.
pub(super) fn alike(b: &Builder<'_>, layers: &[Named<'_>]) -> bool {
    let dtype = |(_, layer): Named<'_>| b.dtype(&layer.weight);
    layers.windows(2).all(|pair| dtype(pair[0]) == dtype(pair[1]))
}

/// `y`, `[batch, tokens, outputs of the tensor]`, with the bias.
fn biased(b: &mut Builder<'_>, (name, layer): Named<'_>, y: Tensor) -> Tensor {
    let Some(bias) = &layer.bias else { return y };
    b.scope(name, |b| {
        let shape = b.graph.shape(y).to_vec();
        let bias = b.weight_f32(bias);
        let bias = b.graph.broadcast_in_dim(bias, &shape, &[2]);
        b.graph.add(y, bias)
    })
}

/// The layer's outputs of all those of its tensor.
pub(super) fn part(g: &mut Graph, layer: &Linear, y: Tensor) -> Tensor {
    let (Some(Part { groups, first, size }), &[batch, tokens, outputs]) = (layer.part, g.shape(y)) else {
        return y;
    };
    if groups == 1 {
        return g.slice_dimension(y, 2, first, first + size);
    }
    let grouped = g.reshape(y, &[batch, tokens, groups, outputs / groups]);
    let part = g.slice_dimension(grouped, 3, first, first + size);
    g.reshape(part, &[batch, tokens, groups * size])
}

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs]` as a dot product, or a sum of them over parts of the inputs.
fn dot(b: &mut Builder<'_>, layer: &Linear, x: Tensor) -> Tensor {
    let &[batch, tokens, inputs] = b.graph.shape(x) else {
        return x;
    };
    let x = b.graph.reshape(x, &[batch * tokens, inputs]);
    let matrix = Matrix::from(layer);
    let product = match b.quant {
        Quant::None => plain_dot(b, matrix, x),
        Quant::Q8 | Quant::Q4 => quantized::product(b, matrix, x),
    };
    b.graph.reshape(product, &[batch, tokens, layer.weight_outputs()])
}

fn plain_dot(b: &mut Builder<'_>, matrix: Matrix<'_>, x: Tensor) -> Tensor {
    let operands = b.operands(matrix, x);
    let g = &mut b.graph;
    let contract = [usize::from(!matrix.transposed)];
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &contract, ..DotDimensions::default() };
    let products = operands.into_iter().map(|(x, weight)| g.dot_general(x, weight, &dims, Dtype::F32));
    let products: Vec<_> = products.collect();
    products.into_iter().reduce(|sum, product| g.add(sum, product)).unwrap_or(x)
}

/// Rows of the table for token ids, with what is added to them, see [`Embedding`]: `[batch, tokens]` → `[batch, tokens,
/// hidden]` in `f32`.
pub(crate) fn embedding(b: &mut Builder<'_>, layer: &Embedding, tokens: Tensor, positions: Tensor) -> Tensor {
    let rows = match (b.numerics.products, b.quant) {
        (Products::Kernels(isa), _) => panels::rows(b, isa, &layer.weight, tokens),
        (_, Quant::Q8 | Quant::Q4) => quantized::rows(b, &layer.weight, tokens),
        (Products::Native | Products::Widened, Quant::None) => take_rows(b, &layer.weight, tokens),
    };
    let mut rows = b.graph.scale(rows, layer.scale);
    if let Some(table) = &layer.positions {
        // Padding may stand beyond the table; nothing reads its result.
        let last = table.shape.first().map_or(0, |rows| rows.saturating_sub(1));
        #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
        let last = b.graph.scalar(last as f64, Dtype::I32);
        let last = b.graph.broadcast_like(last, positions);
        let positions = b.graph.minimum(positions, last);
        let of_positions = take_rows(b, table, positions);
        rows = b.graph.add(rows, of_positions);
    }
    if let Some(table) = &layer.token_types {
        let shape = b.graph.shape(tokens).to_vec();
        let first = b.graph.full(0.0, Dtype::I32, &shape);
        let of_types = take_rows(b, table, first);
        rows = b.graph.add(rows, of_types);
    }
    // Fused with the first norm, the gathered rows would go to the stack, which is too small for them.
    let rows = b.graph.barrier(rows);
    layer.norm.as_ref().map_or(rows, |layer| b.scope("norm", |b| norm(b, layer, rows)))
}

/// Rows of a table that is as the checkpoint has it, in `f32`.
fn take_rows(b: &mut Builder<'_>, weight: &Weight, indices: Tensor) -> Tensor {
    let table = b.stored(weight);
    let rows = b.graph.take_rows(table, indices);
    b.widen(weight, rows, Dtype::F32)
}
