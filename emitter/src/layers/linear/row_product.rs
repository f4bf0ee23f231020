//! What is known about a product that a GPU's kernel computes.

use crate::kernels::{MatvecBias, MatvecMatrix, MatvecRow, MatvecWeights};

/// A product that a kernel computes, to be computed by another one with what comes after it.
#[derive(Debug, Clone)]
pub(crate) struct RowProduct {
    pub(super) weights: MatvecWeights,
    pub(super) row: MatvecRow,
    pub(super) matrix: MatvecMatrix,
    pub(super) inputs: usize,
    pub(super) bias_type: MatvecBias,
}
