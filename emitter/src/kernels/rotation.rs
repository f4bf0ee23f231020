//! Calls of `rotation.c`.

use super::arguments::{arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Computes cosines and sines of positions from tables of 64 and of every 64th one.
    struct Rotations {
        positions: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        cos_coarse: Tensor,
        sin_coarse: Tensor,
        cos_fine: Tensor,
        sin_fine: Tensor,
        cos: TensorType,
        sin: TensorType,
        pairs: usize,
    }
}

kernels! { Rotations => "rotation", "rotation"; }
