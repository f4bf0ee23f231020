//! Gated mlps.

use mlxcel_models::{Activation, Mlp};

use super::{
    Builder,
    linear::{linear, linears},
};
use crate::{Graph, Tensor};

/// `down(activation(gate(x)) · up(x))`.
pub(crate) fn mlp(b: &mut Builder<'_>, layer: &Mlp, x: Tensor) -> Tensor {
    let [gate, up] = linears(b, [("gate_proj", &layer.gate), ("up_proj", &layer.up)], x);
    let active = activation(&mut b.graph, layer.activation, gate);
    let inner = b.graph.multiply(active, up);
    linear(b, ("down_proj", &layer.down), inner)
}

fn activation(g: &mut Graph, activation: Activation, x: Tensor) -> Tensor {
    match activation {
        Activation::Silu => {
            let gate = g.logistic(x);
            g.multiply(x, gate)
        }
    }
}
