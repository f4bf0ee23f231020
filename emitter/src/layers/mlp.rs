//! Mlps, gated or not.

use mlxcel_models::{Activation, Mlp};

use super::{
    Builder,
    linear::{linear, linears},
};
use crate::{Graph, Tensor};

/// See [`Mlp`]: `[batch, tokens, hidden]` → the same.
pub(crate) fn mlp(b: &mut Builder<'_>, layer: &Mlp, x: Tensor) -> Tensor {
    let inner = match &layer.gate {
        Some(gate) => {
            let [gate, up] = linears(b, [("gate_proj", gate), ("up_proj", &layer.up)], x);
            let active = activation(&mut b.graph, layer.activation, gate);
            b.graph.multiply(active, up)
        }
        None => {
            let up = linear(b, ("up_proj", &layer.up), x);
            activation(&mut b.graph, layer.activation, up)
        }
    };
    linear(b, ("down_proj", &layer.down), inner)
}

fn activation(g: &mut Graph, activation: Activation, x: Tensor) -> Tensor {
    // `x · (1 + y) / 2`.
    let half_more = |g: &mut Graph, x: Tensor, y: Tensor| {
        let half = g.scale(x, 0.5);
        let product = g.multiply(half, y);
        g.add(half, product)
    };
    match activation {
        Activation::Silu => {
            let gate = g.logistic(x);
            g.multiply(x, gate)
        }
        Activation::Gelu => {
            let scaled = g.scale(x, std::f64::consts::FRAC_1_SQRT_2);
            let erf = g.erf(scaled);
            half_more(g, x, erf)
        }
        Activation::GeluTanh => {
            let square = g.multiply(x, x);
            let cube = g.multiply(square, x);
            let cube = g.scale(cube, 0.044_715);
            let sum = g.add(x, cube);
            let scaled = g.scale(sum, (2.0 / std::f64::consts::PI).sqrt());
            let tanh = g.tanh(scaled);
            half_more(g, x, tanh)
        }
    }
}
