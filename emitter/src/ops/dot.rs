//! Dot products.

use safetensors::Dtype;

use super::attributes::list;
use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_float, is_integer},
};

/// The batch and contracting dimensions of a dot product.
#[derive(Debug, Clone, Default)]
pub struct DotDimensions<'a> {
    /// Batch dimensions of the left operand.
    pub lhs_batch: &'a [usize],
    /// Batch dimensions of the right operand, in the same order.
    pub rhs_batch: &'a [usize],
    /// Contracting dimensions of the left operand.
    pub lhs_contract: &'a [usize],
    /// Contracting dimensions of the right operand, in the same order.
    pub rhs_contract: &'a [usize],
}

impl Graph {
    /// Returns the product of matrices `[…, n, k]` and `[…, k, m]`. A vector of `k` elements takes the place of either, and
    /// leaves no dimension in the result.
    pub fn matmul(&mut self, x: Tensor, y: Tensor) -> Tensor {
        let (left, right) = (self.shape(x).len(), self.shape(y).len());
        if !Self::poisoned(&[x, y]) && (left == 0 || right == 0) {
            let (a, b) = (self.type_of(x), self.type_of(y));
            return self.fail("matmul", format!("found {a} and {b}, expected vectors or matrices"));
        }
        let batch: Vec<_> = (0..left.min(right).saturating_sub(2)).collect();
        let dims = DotDimensions {
            lhs_batch: &batch,
            rhs_batch: &batch,
            lhs_contract: &[left.saturating_sub(1)],
            rhs_contract: &[right.saturating_sub(2)],
        };
        self.dot_general(x, y, &dims, self.dtype(x))
    }

    /// Returns the generalized matrix product, summed in `accumulate`. The result has the batch dimensions, then the rest of the
    /// left operand's, then the rest of the right operand's.
    pub fn dot_general(
        &mut self,
        lhs: Tensor,
        rhs: Tensor,
        dims: &DotDimensions<'_>,
        accumulate: Dtype,
    ) -> Tensor {
        const OP: &str = "stablehlo.dot_general";
        if Self::poisoned(&[lhs, rhs]) {
            return Self::poison();
        }
        let (a, b) = (self.type_of(lhs), self.type_of(rhs));
        if let Err(problem) = check(&a, &b, dims, accumulate) {
            return self.fail(OP, problem);
        }
        let free = |ty: &TensorType, batch: &[usize], contract: &[usize]| -> Vec<usize> {
            (0..ty.rank())
                .filter(|d| !batch.contains(d) && !contract.contains(d))
                .map(|d| ty.shape[d])
                .collect()
        };
        let mut shape: Vec<_> = dims.lhs_batch.iter().map(|&d| a.shape[d]).collect();
        shape.extend(free(&a, dims.lhs_batch, dims.lhs_contract));
        shape.extend(free(&b, dims.rhs_batch, dims.rhs_contract));
        let numbers = format!(
            "#stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], \
             lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>",
            list(dims.lhs_batch),
            list(dims.rhs_batch),
            list(dims.lhs_contract),
            list(dims.rhs_contract)
        );
        self.op(OP, &[lhs, rhs], vec![("dot_dimension_numbers", numbers)], TensorType::new(accumulate, shape))
    }
}

/// Checks that operands, dimensions and accumulator fit.
fn check(a: &TensorType, b: &TensorType, dims: &DotDimensions<'_>, accumulate: Dtype) -> Result<(), String> {
    if a.dtype != b.dtype {
        return Err(format!("found {a} and {b}, expected one element type"));
    }
    let kinds_match =
        (is_float(a.dtype) && is_float(accumulate)) || (is_integer(a.dtype) && is_integer(accumulate));
    if !kinds_match || accumulate.bitsize() < a.dtype.bitsize() {
        return Err(format!("found accumulator {accumulate}, expected one as wide as {a} and of its kind"));
    }
    let pairs =
        [("batch", dims.lhs_batch, dims.rhs_batch), ("contracting", dims.lhs_contract, dims.rhs_contract)];
    for (kind, left, right) in pairs {
        let sizes =
            |ty: &TensorType, ds: &[usize]| ds.iter().map(|&d| ty.shape.get(d).copied()).collect::<Vec<_>>();
        let (l, r) = (sizes(a, left), sizes(b, right));
        if l != r || l.contains(&None) {
            return Err(format!(
                "found {a} and {b}, expected {kind} dimensions {left:?} and {right:?} to match"
            ));
        }
    }
    for (ty, batch, contract) in
        [(a, dims.lhs_batch, dims.lhs_contract), (b, dims.rhs_batch, dims.rhs_contract)]
    {
        let mut all: Vec<_> = batch.iter().chain(contract).collect();
        all.sort_unstable();
        if all.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("found a dimension of {ty} named twice, expected each once"));
        }
    }
    Ok(())
}
