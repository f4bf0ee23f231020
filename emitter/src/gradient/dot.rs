//! Gradients of dot products.

use super::{shape::inverse, step::Step};
use crate::{
    graph::{Graph, Tensor},
    mlir::attributes::field_sizes,
    ops::DotDimensions,
};

/// One operand of a dot product.
struct Side {
    tensor: Tensor,
    batch: Vec<usize>,
    contract: Vec<usize>,
    free: Vec<usize>,
}

/// Adds the gradients of the operands of a dot product.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if step.name() != "stablehlo.dot_general" {
        return false;
    }
    let d = step.gradient();
    let numbers = step.attribute("dot_dimension_numbers");
    let [lhs, rhs] = [(0, "lhs"), (1, "rhs")].map(|(index, name)| {
        let tensor = step.operand(index);
        let batch = field_sizes(numbers, &format!("{name}_batching_dimensions"));
        let contract = field_sizes(numbers, &format!("{name}_contracting_dimensions"));
        let rank = g.shape(tensor).len();
        let free = (0..rank).filter(|d| !batch.contains(d) && !contract.contains(d)).collect();
        Side { tensor, batch, contract, free }
    });
    step.send(g, 0, |g| product(g, d, &lhs, &rhs, lhs.batch.len() + lhs.free.len()));
    step.send(g, 1, |g| product(g, d, &rhs, &lhs, lhs.batch.len()));
    true
}

/// Returns the gradient of `own`: the product of `d` and the other operand over that one's free dimensions, which begin at
/// `begin` in `d`.
fn product(g: &mut Graph, d: Tensor, own: &Side, other: &Side, begin: usize) -> Tensor {
    let (ty, accumulate) = (g.type_of(own.tensor), g.dtype(d));
    let batch: Vec<_> = (0..own.batch.len()).collect();
    let contract: Vec<_> = (begin..begin + other.free.len()).collect();
    let dims = DotDimensions {
        lhs_batch: &batch,
        rhs_batch: &other.batch,
        lhs_contract: &contract,
        rhs_contract: &other.free,
    };
    let other_tensor = g.convert(other.tensor, accumulate);
    let product = g.dot_general(d, other_tensor, &dims, accumulate);
    // The product has the batch, the free dimensions, and those that were contracted in the other operand's order.
    let mut pairs: Vec<_> = other.contract.iter().zip(&own.contract).collect();
    pairs.sort_unstable();
    let contracted = pairs.into_iter().map(|(_, own)| own);
    let order: Vec<_> = own.batch.iter().chain(&own.free).chain(contracted).copied().collect();
    let gradient = g.transpose(product, &inverse(&order));
    g.convert(gradient, ty.dtype)
}
