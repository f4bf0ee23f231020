//! A block: attention and feed-forward, each a branch of the residual stream.

use mlxcel_models::{Block, Branch};

use crate::{
    graph::Tensor,
    layers::{
        attention::{Rows, attention},
        builder::Builder,
        cache::LayerCache,
        feed_forward::feed_forward,
        norm::norm,
        rope::Rotation,
    },
};

/// Computes a block: `[batch, tokens, hidden]` to the same shape.
pub(super) fn block(
    b: &mut Builder<'_>,
    layer: &Block,
    cache: &mut LayerCache<'_>,
    rotation: Option<Rotation>,
    rows: &Rows,
    x: Tensor,
) -> Tensor {
    let attended = b.scope("attention", |b| {
        branch(b, &layer.attention, x, |b, layer, x| attention(b, layer, cache, rotation, rows, x))
    });
    let input = if layer.parallel { x } else { add_branch(b, &layer.attention, x, attended) };
    let fed = b.scope("mlp", |b| branch(b, &layer.mlp, input, feed_forward));
    let fed = add_branch(b, &layer.mlp, input, fed);
    if layer.parallel { add_branch(b, &layer.attention, fed, attended) } else { fed }
}

/// Computes a branch of the residual stream `x`, with the norms around its layer.
fn branch<T>(
    b: &mut Builder<'_>,
    branch: &Branch<T>,
    x: Tensor,
    layer: impl FnOnce(&mut Builder<'_>, &T, Tensor) -> Tensor,
) -> Tensor {
    let normed = branch.before.as_ref().map_or(x, |before| b.scope("norm", |b| norm(b, before, x)));
    let mut y = layer(b, &branch.layer, normed);
    if let Some(after) = &branch.after {
        y = b.scope("norm_after", |b| norm(b, after, y));
    }
    b.graph.scale(y, branch.scale)
}

/// Adds the result of a branch to the residual stream `x`.
fn add_branch<T>(b: &mut Builder<'_>, branch: &Branch<T>, x: Tensor, result: Tensor) -> Tensor {
    let sum = b.graph.add(x, result);
    branch.after_sum.as_ref().map_or(sum, |layer| b.scope("norm_after_sum", |b| norm(b, layer, sum)))
}
