//! Calls of `quantize.c`, which quantizes activations to 8 bits.

use super::arguments::{arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Quantizes rows of `k` elements, with one scale each.
    struct QuantizeRows {
        x: Tensor,
        q: TensorType,
        scale: TensorType,
        k: usize,
    }

    /// Quantizes groups of 32 elements in rows of `k`, with a scale and a first summand each.
    struct QuantizeGroups {
        x: Tensor,
        q: TensorType,
        scale: TensorType,
        start: TensorType,
        k: usize,
    }
}

kernels! {
    QuantizeRows => "quantize", "quantize_rows";
    QuantizeGroups => "quantize", "quantize_groups";
}
