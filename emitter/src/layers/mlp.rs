//! Gated mlps.

use mlxcel_models::{Activation, Mlp};

use super::{
    Builder,
    linear::{linear, linears},
};
use crate::{Graph, Tensor};

/// `down(activation(gate(x)) · up(x))`.
pub(crate) fn mlp(b: &mut Builder<'_>, layer: &Mlp, x: Tensor) -> Tensor {
    let [gate, up] = b.scope("gate_up_proj", |b| linears(b, [&layer.gate, &layer.up], x));
    let active = activation(&mut b.graph, layer.activation, gate);
    let inner = b.graph.multiply(active, up);
    b.scope("down_proj", |b| linear(b, &layer.down, inner))
}

fn activation(g: &mut Graph, activation: Activation, x: Tensor) -> Tensor {
    match activation {
        Activation::Silu => {
            let gate = g.logistic(x);
            g.multiply(x, gate)
        }
    }
}
