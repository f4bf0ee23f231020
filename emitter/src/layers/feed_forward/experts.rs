//! Mixtures of experts. A token computes its own experts and no others.
//!
//! A row is a token with one of its experts. Kernels take rows that are sorted by expert, so that the weights of an expert
//! are read once (`kernels.rs`), and those of GPUs take a single token by itself (`gpu.rs`). Generated code takes blocks of rows of one
//! expert in a loop (`generated.rs`).

mod generated;
mod gpu;
mod gpu_rows;
mod kernels;
mod linears;
mod stack;

use mlxcel_models::Experts;

use super::mlp::mlp;
use crate::{
    graph::Tensor,
    layers::{
        builder::Builder,
        linear::{added, linear},
    },
    plan::Products,
};

/// Computes a mixture, see [`Experts`]: `[batch, tokens, hidden]` to the same shape.
pub(super) fn experts(b: &mut Builder<'_>, layer: &Experts, x: Tensor) -> Tensor {
    let logits = linear(b, ("router", &layer.router), x);
    let y = match b.numerics.products {
        Products::Kernels(isa) => kernels::experts(b, isa, layer, logits, x),
        Products::Native | Products::Widened => {
            let by_kernel = gpu::experts(b, layer, logits, x);
            by_kernel.unwrap_or_else(|| generated::experts(b, layer, logits, x))
        }
    };
    let Some(shared) = &layer.shared else { return y };
    b.scope("shared", |b| {
        let mut z = mlp(b, &shared.mlp, x);
        if let Some(gate) = &shared.gate {
            let gate = linear(b, ("gate", gate), x);
            let gate = b.graph.logistic(gate);
            let shape = b.graph.shape(z).to_vec();
            let gate = b.graph.reshape(gate, &shape[..2]);
            let gate = b.graph.broadcast_in_dim(gate, &shape, &[0, 1]);
            z = b.graph.multiply(z, gate);
        }
        added(b, y, z, 1.0).unwrap_or_else(|| b.graph.add(y, z))
    })
}
