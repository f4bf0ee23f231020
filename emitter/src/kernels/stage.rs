//! Calls of `cuda/stage.c`, `cuda/copy.c`, `cuda/gather.c` and `cuda/rotation.c`.

use super::arguments::{arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Copies positions and the page table of a pool to the device's own memory, and sets counters to zero.
    struct Stage {
        positions: Tensor,
        slots: Tensor,
        pages: Tensor,
        first_pages: Tensor,
        own_positions: TensorType,
        /// `[3, rows]`: positions, slots and first pages.
        row_numbers: TensorType,
        own_pages: TensorType,
        counters: TensorType,
        rows: usize,
        /// The elements of `pages`.
        entries: usize,
        sequences: usize,
        /// The number of counters.
        count: usize,
    }

    /// Computes cosines and sines of positions from tables of 64 and of every 64th one.
    struct CudaRotation {
        positions: Tensor,
        cos_coarse: Tensor,
        sin_coarse: Tensor,
        cos_fine: Tensor,
        sin_fine: Tensor,
        cos: TensorType,
        sin: TensorType,
        pairs: usize,
    }

    /// Looks up rows of a table that a kernel may have written, `[rows, width]` in `f32`.
    struct CudaGather {
        table: Tensor,
        ids: Tensor,
        out: TensorType,
        rows: usize,
        width: usize,
    }

    /// Copies a tensor of `f32`.
    struct Copy {
        from: Tensor,
        to: TensorType,
        count: usize,
    }
}

kernels! {
    Stage => "stage", "cuda_stage";
    CudaRotation => "rotation", "cuda_rotation";
    CudaGather => "gather", "cuda_gather";
    Copy => "copy", "cuda_copy_f32";
}
