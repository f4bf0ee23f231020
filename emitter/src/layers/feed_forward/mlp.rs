//! MLPs, gated or not.

use mlxcel_models::Mlp;

use super::activation::{Inner, activate};
use crate::{
    graph::Tensor,
    layers::{
        builder::Builder,
        linear::{linear, linears},
    },
};

/// Computes an MLP, see [`Mlp`]: `[batch, tokens, hidden]` to the same shape.
pub(super) fn mlp(b: &mut Builder<'_>, layer: &Mlp, x: Tensor) -> Tensor {
    let inner = match &layer.gate {
        Some(gate) => {
            let [gate, up] = linears(b, [("gate_proj", gate), ("up_proj", &layer.up)], x);
            Inner { gate: Some(gate), up }
        }
        None => Inner { gate: None, up: linear(b, ("up_proj", &layer.up), x) },
    };
    let hidden = activate(b, layer, inner);
    linear(b, ("down_proj", &layer.down), hidden)
}
