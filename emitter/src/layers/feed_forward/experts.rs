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
    graph::{Graph, Tensor},
    layers::{
        addend::Addend,
        builder::Builder,
        linear::{added, linear},
        norm::adds_rows,
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
        let z = mlp(b, &shared.mlp, x);
        let gate = shared.gate.as_ref().map(|gate| linear(b, ("gate", gate), x));
        let gated = gate.map_or(z, |gate| gated(&mut b.graph, gate, z));
        if !adds_rows(b, y) {
            return added(b, y, gated, 1.0).unwrap_or_else(|| b.graph.add(y, gated));
        }
        let sum = b.graph.add(y, gated);
        let terms = [Addend { gate, ..Addend::new(z, 1.0) }, Addend::new(y, 1.0)];
        b.mixture_terms.insert(sum, terms);
        sum
    })
}

/// Multiplies rows, `[batch, tokens, hidden]`, by the sigmoids of `gate`, `[batch, tokens, 1]`.
fn gated(g: &mut Graph, gate: Tensor, rows: Tensor) -> Tensor {
    let gate = g.logistic(gate);
    let shape = g.shape(rows).to_vec();
    let gate = g.reshape(gate, &shape[..2]);
    let gate = g.broadcast_in_dim(gate, &shape, &[0, 1]);
    g.multiply(rows, gate)
}
