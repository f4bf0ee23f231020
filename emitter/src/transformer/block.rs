//! A block: attention and feed-forward, each a branch of the residual stream.

use mlxcel_models::{Block, Branch};

use crate::{
    graph::Tensor,
    layers::{
        addend::Addend,
        attention::{Rows, attention},
        builder::Builder,
        cache::LayerCache,
        feed_forward::feed_forward,
        norm::{adds_norm, norm},
        residual::Residual,
        rope::Rotation,
    },
};

/// Computes a block of the residual stream `x`.
pub(super) fn block(
    b: &mut Builder<'_>,
    layer: &Block,
    cache: &mut LayerCache<'_>,
    rotation: Option<Rotation>,
    rows: &Rows,
    x: &mut Residual,
) {
    let Block { attention: attention_branch, mlp: mlp_branch, parallel } = layer;
    let attention_input = b.scope("attention", |b| layer_input(b, attention_branch, x));
    let attended = b.scope("attention", |b| {
        branch(b, attention_branch, attention_input, |b, layer, x| {
            attention(b, layer, cache, rotation, rows, x)
        })
    });
    let later = if *parallel {
        Some(attended)
    } else {
        add_branch(b, attention_branch, x, attended);
        None
    };
    let fed = b.scope("mlp", |b| {
        // Parallel branches often share their norm.
        let is_known = *parallel && mlp_branch.before == attention_branch.before;
        let input = if is_known { attention_input } else { layer_input(b, mlp_branch, x) };
        branch(b, mlp_branch, input, feed_forward)
    });
    add_branch(b, mlp_branch, x, fed);
    if let Some(attended) = later {
        add_branch(b, attention_branch, x, attended);
    }
}

/// Returns the input of a branch's layer.
fn layer_input<T>(b: &mut Builder<'_>, branch: &Branch<T>, x: &mut Residual) -> Tensor {
    match &branch.before {
        Some(before) => b.scope("norm", |b| x.input(b, before)),
        None => x.sum(b),
    }
}

/// Computes what a branch adds to the residual stream from its layer's input.
fn branch<T>(
    b: &mut Builder<'_>,
    branch: &Branch<T>,
    input: Tensor,
    layer: impl FnOnce(&mut Builder<'_>, &T, Tensor) -> Tensor,
) -> Addend {
    let y = layer(b, &branch.layer, input);
    let Some(after) = &branch.after else { return Addend::new(y, branch.scale) };
    if adds_norm(b, after, y) {
        return Addend { after: Some(after.clone()), ..Addend::new(y, branch.scale) };
    }
    let normed = b.scope("norm_after", |b| norm(b, after, y));
    Addend::new(normed, branch.scale)
}

/// Adds the result of a branch to the residual stream.
fn add_branch<T>(b: &mut Builder<'_>, branch: &Branch<T>, x: &mut Residual, addend: Addend) {
    x.add(b, addend);
    if let Some(layer) = &branch.after_sum {
        let normed = b.scope("norm_after_sum", |b| x.norm(b, layer));
        *x = Residual::new(b, normed);
    }
}
