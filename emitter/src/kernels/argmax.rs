//! Calls of `cuda/argmax.c`.

use super::arguments::{arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Finds the index of the largest element of each row of `length` elements.
    struct Argmax {
        logits: Tensor,
        out: TensorType,
        length: usize,
    }
}

kernels! { Argmax => "argmax", "cuda_argmax"; }
