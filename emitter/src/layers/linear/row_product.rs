//! What is known about products that a GPU's kernels compute.

use crate::{
    graph::Tensor,
    kernels::{MatvecBias, MatvecMatrix, MatvecRow, MatvecWeights},
};

/// A product of a row that a kernel computes, to be computed by another one with what comes after it.
#[derive(Debug, Clone)]
pub(crate) struct RowProduct {
    pub(super) weights: MatvecWeights,
    pub(super) row: MatvecRow,
    pub(super) matrix: MatvecMatrix,
    pub(super) inputs: usize,
    pub(super) bias_type: MatvecBias,
}

/// A product of several rows that a kernel computes, likewise.
#[derive(Debug, Clone)]
pub(crate) struct RowsProduct {
    pub(super) weights: MatvecWeights,
    /// `[rows, inputs]`, in the type that the kernel multiplies.
    pub(super) x: Tensor,
    pub(super) weight: Tensor,
    pub(super) scales: Option<Tensor>,
    /// Without a bias, any tensor.
    pub(super) bias: Tensor,
    pub(super) bias_type: MatvecBias,
}
