//! Activations as generated code.

use mlxcel_models::{Activation, Mlp};
use safetensors::Dtype;

use super::inner::Inner;
use crate::graph::{Graph, Tensor};

/// Computes the input of an MLP's last layer.
pub(in super::super) fn activate(g: &mut Graph, layer: &Mlp, Inner { gate, mut up }: Inner) -> Tensor {
    let Some(mut gate) = gate else { return activation(g, layer.activation, up) };
    if let Some(limit) = layer.limit {
        let max = g.scalar(limit, Dtype::F32);
        let max = g.broadcast_like(max, gate);
        gate = g.minimum(gate, max);
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
    // Computes `x · (1 + y) / 2`.
    let half_of_sum = |g: &mut Graph, x: Tensor, y: Tensor| {
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
            half_of_sum(g, x, erf)
        }
        Activation::GeluTanh => {
            let square = g.multiply(x, x);
            let cube = g.multiply(square, x);
            let cube = g.scale(cube, 0.044_715);
            let sum = g.add(x, cube);
            let scaled = g.scale(sum, (2.0 / std::f64::consts::PI).sqrt());
            let tanh = g.tanh(scaled);
            half_of_sum(g, x, tanh)
        }
    }
}
