//! Activations of MLPs and of experts, by kernels on CPUs (`kernel.rs`) and as generated code (`generated.rs`).

mod generated;
mod inner;
mod kernel;

use mlxcel_models::Mlp;

pub(super) use self::{
    generated::activate as generated_activate, inner::Inner, kernel::activate as kernel_activate,
};
use crate::{
    graph::Tensor,
    layers::{builder::Builder, linear::activated},
    plan::Products,
};

/// Computes the input of an MLP's last layer.
pub(super) fn activate(b: &mut Builder<'_>, layer: &Mlp, inner: Inner) -> Tensor {
    if let Some(activated) = activated(b, layer, inner.gate, inner.up) {
        return activated;
    }
    match (b.numerics.products, b.graph.shape(inner.up)) {
        (Products::Kernels(isa), &[batch, tokens, _]) => {
            let lengths = b.lengths(batch, tokens);
            kernel::activate(b, isa, layer, inner, lengths)
        }
        _ => generated_activate(&mut b.graph, layer, inner),
    }
}
