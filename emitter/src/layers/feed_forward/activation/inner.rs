//! What an activation takes.

use crate::graph::Tensor;

/// The results of an MLP's first layers, `[batch, tokens, width]`.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Inner {
    pub(in super::super) gate: Option<Tensor>,
    pub(in super::super) up: Tensor,
}
