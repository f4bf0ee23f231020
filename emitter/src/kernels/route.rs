//! Calls of `route.c`, which chooses the experts of a mixture.

use super::arguments::{arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Chooses and weighs experts, and sorts rows by expert. `route.c` describes the results.
    struct Route {
        logits: Tensor,
        lengths: Tensor,
        weights: TensorType,
        slots: TensorType,
        row_tokens: TensorType,
        row_experts: TensorType,
        segment_experts: TensorType,
        segment_begins: TensorType,
        batch: usize,
        tokens: usize,
        experts: usize,
        active: usize,
        normalized: bool,
    }
}

kernels! { Route => "route", "route"; }
