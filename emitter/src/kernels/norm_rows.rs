//! Calls of `cuda/norm_rows.c`.

use super::{
    arguments::{F32Bits, arguments, kernels},
    executable::Grid,
};
use crate::{graph::Tensor, types::TensorType};

/// Threads of a workgroup, which has a row: as in `cuda/norm.h`.
const THREADS: usize = 256;

/// What the kernel requires that a row is a multiple of.
pub(crate) const ROW_ELEMENTS: usize = 4;

arguments! {
    /// Adds parts of a product to rows of the residual stream, and normalizes the sums.
    struct CudaNormRows {
        x: Tensor,
        /// `[splits, rows, width]`; any tensor of `f32` if `splits` is 0.
        parts: Tensor,
        /// `[rows]`, of which the sigmoids are factors; any tensor of `f32` if not `gated`.
        gates: Tensor,
        /// Of the parts' own norm; any tensor if `after` has none.
        after_weight: Tensor,
        /// Any tensors if `norm` is 0.
        norm_weight: Tensor,
        norm_bias: Tensor,
        /// Not written if `splits` is 0.
        sum: TensorType,
        /// Not written if `norm` is 0.
        out: TensorType,
        rows: usize,
        width: usize,
        splits: usize,
        gated: bool,
        /// 0 is none, 1 RMS, 2 layer, 3 layer without a bias.
        norm: usize,
        /// 0 is `f32`, 1 bf16, 2 f16.
        norm_type: usize,
        out_type: usize,
        epsilon: F32Bits,
        offset: F32Bits,
        after: AfterNorm,
        factor: F32Bits,
    }

    /// The norm of the parts of a product.
    struct AfterNorm {
        /// 0 is none, 1 RMS.
        after: usize,
        /// 0 is `f32`, 1 bf16, 2 f16.
        after_type: usize,
        after_epsilon: F32Bits,
        after_offset: F32Bits,
    }
}

impl CudaNormRows {
    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        Grid { items: self.rows, grain: THREADS }
    }
}

kernels! { CudaNormRows => "norm_rows", "cuda_norm_rows"; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernel() {
        assert_eq!(stated_constant("cuda_norm_rows", "threads"), Some(THREADS));
    }
}
