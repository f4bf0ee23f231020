//! The layers of a block that treat each token separately: MLPs, and mixtures of experts.

mod activation;
mod experts;
mod mlp;

use mlxcel_models::FeedForward;

use self::{experts::experts, mlp::mlp};
use super::builder::Builder;
use crate::graph::Tensor;

/// Computes an MLP or a mixture of experts: `[batch, tokens, hidden]` to the same shape.
pub(crate) fn feed_forward(b: &mut Builder<'_>, layer: &FeedForward, x: Tensor) -> Tensor {
    match layer {
        FeedForward::Mlp(layer) => mlp(b, layer, x),
        FeedForward::Experts(layer) => experts(b, layer, x),
    }
}
