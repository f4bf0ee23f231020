//! What a block computes of each token alone: mlps, gated or not.

use mlxcel_models::{Activation, FeedForward, Mlp};
use safetensors::Dtype;

use super::{
    Builder,
    experts::experts,
    linear::{linear, linears},
};
use crate::{Graph, Tensor};

/// One mlp, or those that each token chooses: `[batch, tokens, hidden]` → the same.
pub(crate) fn feed_forward(b: &mut Builder<'_>, layer: &FeedForward, x: Tensor) -> Tensor {
    match layer {
        FeedForward::Mlp(layer) => mlp(b, layer, x),
        FeedForward::Experts(layer) => experts(b, layer, x),
    }
}

/// See [`Mlp`]: `[batch, tokens, hidden]` → the same.
pub(super) fn mlp(b: &mut Builder<'_>, layer: &Mlp, x: Tensor) -> Tensor {
    let (gate, up) = match &layer.gate {
        Some(gate) => {
            let [gate, up] = linears(b, [("gate_proj", gate), ("up_proj", &layer.up)], x);
            (Some(gate), up)
        }
        None => (None, linear(b, ("up_proj", &layer.up), x)),
    };
    let inner = inner(&mut b.graph, layer, gate, up);
    linear(b, ("down_proj", &layer.down), inner)
}

/// What an mlp's last layer takes, from what its first ones give.
pub(super) fn inner(g: &mut Graph, layer: &Mlp, gate: Option<Tensor>, up: Tensor) -> Tensor {
    let Some(mut gate) = gate else { return activation(g, layer.activation, up) };
    let mut up = up;
    if let Some(limit) = layer.limit {
        let most = g.scalar(limit, Dtype::F32);
        let most = g.broadcast_like(most, gate);
        gate = g.minimum(gate, most);
        up = g.clip(up, limit);
    }
    if layer.up_offset != 0.0 {
        let offset = g.scalar(layer.up_offset, Dtype::F32);
        let offset = g.broadcast_like(offset, up);
        up = g.add(up, offset);
    }
    let active = activation(g, layer.activation, gate);
    g.multiply(active, up)
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
        Activation::Swish { beta } => {
            let steep = g.scale(x, beta);
            let gate = g.logistic(steep);
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
