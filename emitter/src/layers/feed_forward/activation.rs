//! Activations of MLPs and of experts, by kernels on CPUs (`kernel.rs`) and as generated code (`generated.rs`).

mod generated;
mod kernel;

use mlxcel_models::Mlp;

pub(super) use self::{generated::activate as generated_activate, kernel::activate as kernel_activate};
use crate::{graph::Tensor, layers::builder::Builder, plan::Products};

/// The results of an MLP's first layers, `[batch, tokens, width]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inner {
    pub(super) gate: Option<Tensor>,
    pub(super) up: Tensor,
}

/// Computes the input of an MLP's last layer.
pub(super) fn activate(b: &mut Builder<'_>, layer: &Mlp, inner: Inner) -> Tensor {
    match (b.numerics.products, b.graph.shape(inner.up)) {
        (Products::Kernels(isa), &[batch, tokens, _]) => {
            let lengths = b.lengths(batch, tokens);
            kernel::activate(b, isa, layer, inner, lengths)
        }
        _ => generated_activate(&mut b.graph, layer, inner),
    }
}
