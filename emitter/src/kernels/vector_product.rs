//! Calls of `vector_product.c`: products of a matrix as a program has it and a vector.

use super::arguments::{arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

/// The elements of the vectors that the kernels compute with. Matrices have at least as many columns.
pub(crate) const LANES: usize = 16;

arguments! {
    /// Sums each row of `a`, `[rows, columns]`, times `x`.
    struct ProductOfRows {
        a: Tensor,
        x: Tensor,
        out: TensorType,
        rows: usize,
        columns: usize,
    }

    /// Sums each column of `a`, `[rows, columns]`, times `x`.
    struct ProductOfColumns {
        a: Tensor,
        x: Tensor,
        out: TensorType,
        rows: usize,
        columns: usize,
    }
}

kernels! {
    ProductOfRows => "vector_product", "product_of_rows";
    ProductOfColumns => "vector_product", "product_of_columns";
}
