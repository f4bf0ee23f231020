//! Linear layers as StableHLO dot products.

use mlxcel_models::Linear;
use safetensors::Dtype;

use super::quantized;
use crate::{
    form::Form,
    graph::Tensor,
    group_form::GroupForm,
    layers::{builder::Builder, weights::Matrix},
    ops::DotDimensions,
};

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs of the tensor]`.
pub(super) fn dot(b: &mut Builder<'_>, layer: &Linear, x: Tensor) -> Tensor {
    let &[batch, tokens, inputs] = b.graph.shape(x) else {
        return x;
    };
    let x = b.graph.reshape(x, &[batch * tokens, inputs]);
    let matrix = Matrix::from(layer);
    let product = match b.form(&layer.weight) {
        // As kernels read it, of which most multiply by it: a second copy would take as much memory.
        Form::Floats if b.numerics.gpu.is_some() && matrix.transposed && matrix.stack_index.is_none() => {
            let (weight, _) = quantized::stored(b, matrix, &layer.weight);
            let operand = b.operand_dtype();
            let [x, weight] = [x, weight].map(|of| b.graph.convert(of, operand));
            quantized::dot(&mut b.graph, x, weight)
        }
        Form::Floats => unquantized_dot(b, matrix, x),
        Form::Rows => quantized::q8_product(b, matrix, x),
        Form::Groups(GroupForm::Q4_0) => quantized::q4_product(b, matrix, x),
        Form::Groups(form) => quantized::groups_product(b, matrix, x, form),
    };
    b.graph.reshape(product, &[batch, tokens, layer.weight_outputs()])
}

/// Computes one dot product, or a sum of them over parts of the inputs.
fn unquantized_dot(b: &mut Builder<'_>, matrix: Matrix<'_>, x: Tensor) -> Tensor {
    let operands = b.dot_operands(matrix, x);
    let g = &mut b.graph;
    let contract = [usize::from(!matrix.transposed)];
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &contract, ..DotDimensions::default() };
    let products = operands.into_iter().map(|(x, weight)| g.dot_general(x, weight, &dims, Dtype::F32));
    let products: Vec<_> = products.collect();
    products.into_iter().reduce(|sum, product| g.add(sum, product)).unwrap_or(x)
}
