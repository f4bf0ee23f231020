//! Single numbers that get more dimensions than the tensor that they are a slice of.
//!
//! iree-compile takes all for one slice, which cannot have more dimensions than the tensor. A barrier keeps them apart.

use super::super::{ast::Op, attributes::tensor_type};
use crate::graph::{Graph, Tensor};

/// Returns what stands for `reshape` or `broadcast_in_dim`, if it is one of those.
pub(super) fn rewrite(g: &mut Graph, op: &Op<'_>, x: Tensor) -> Option<Tensor> {
    let ty = op.result_types.first().and_then(|ty| tensor_type(ty))?;
    is_slice(g, x, &ty.shape).then(|| reshape(g, x, &ty.shape))
}

/// Returns the elements in another shape.
pub(super) fn reshape(g: &mut Graph, x: Tensor, shape: &[usize]) -> Tensor {
    if !is_slice(g, x, shape) {
        return g.reshape(x, shape);
    }
    let ty = g.type_of(x);
    let apart = g.op("stablehlo.optimization_barrier", &[x], vec![], ty);
    g.reshape(apart, shape)
}

/// Returns whether a number is a slice of a tensor with fewer dimensions than the shape.
fn is_slice(g: &Graph, x: Tensor, shape: &[usize]) -> bool {
    let mut value = x;
    if shape.iter().any(|size| *size != 1) || g.type_of(x).elements() != 1 {
        return false;
    }
    while let Some(op) = g.producer(value) {
        let Some(&operand) = op.operands.first() else { return false };
        match &*op.name {
            "stablehlo.broadcast_in_dim" | "stablehlo.reshape" => value = operand,
            "stablehlo.dynamic_slice" | "stablehlo.slice" => return g.shape(operand).len() < shape.len(),
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::replayed;

    #[test]
    fn only_numbers_from_smaller_tensors_have_a_barrier() {
        let reshaped = |ty: &str, slice: &str, last: &str| {
            let line = format!(
                r#"%s = "stablehlo.slice"(%0) <{{limit_indices = array<i64: {slice}>, start_indices = array<i64: {slice}>,
                    strides = array<i64: {slice}>}}> : ({ty}) -> tensor<1xf32>
                %t = "stablehlo.reshape"(%s) : (tensor<1xf32>) -> tensor<f32>
                %r = "stablehlo.reshape"(%t) : (tensor<f32>) -> {last}"#
            );
            replayed(&[ty], &line, last).unwrap().contains("optimization_barrier")
        };
        assert!(reshaped("tensor<4xf32>", "1", "tensor<1x1xf32>"));
        assert!(!reshaped("tensor<4xf32>", "1", "tensor<1xf32>"));
        assert!(!reshaped("tensor<4x4xf32>", "1, 1", "tensor<1x1xf32>"));
    }
}
