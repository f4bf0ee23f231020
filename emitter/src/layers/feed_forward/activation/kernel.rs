//! Activations by kernels.

use mlxcel_models::{Activation, Mlp};
use safetensors::Dtype;

use super::inner::Inner;
use crate::{
    graph::Tensor,
    kernels::{Activate, ActivateGated, ActivateSizes, ActivationKind, F32Bits, Grid, Isa, QuantizedResults},
    layers::{builder::Builder, linear::panels::quantized_results},
    types::TensorType,
};

/// Elements of a workgroup: fewer would not be worth one, and more would leave cores without work in a decode step.
const WORKGROUP_ELEMENTS: usize = 2048;

/// Computes the input of an MLP's last layer for rows before `lengths`, `[batch]`.
pub(in super::super) fn activate(
    b: &mut Builder<'_>,
    isa: Isa,
    layer: &Mlp,
    inner: Inner,
    lengths: Tensor,
) -> Tensor {
    let Inner { gate, up } = inner;
    let &[batch, tokens, width] = b.graph.shape(up) else {
        return up;
    };
    let (kind, steepness) = match layer.activation {
        Activation::Silu => (ActivationKind::Sigmoid, 1.0),
        Activation::Swish { beta } => (ActivationKind::Sigmoid, beta),
        Activation::Gelu => (ActivationKind::Erf, 1.0),
        Activation::GeluTanh => (ActivationKind::Tanh, 1.0),
    };
    let activation = b.activation();
    let quantized = quantized_results(b, activation, isa, [batch, tokens, width]);
    // A quantized row has one scale.
    let whole_rows = gate.is_some() && matches!(quantized, QuantizedResults::Q8 { .. });
    let chunk = if whole_rows { width } else { WORKGROUP_ELEMENTS.min(width) };
    let steepness = F32Bits(steepness);
    let sizes = ActivateSizes { batch, tokens, width, chunk, kind, steepness };
    let items = batch * tokens * width.div_ceil(chunk.max(1));
    let grid = Grid { items, grain: (WORKGROUP_ELEMENTS / chunk.max(1)).clamp(1, items.max(1)) };
    let out = TensorType::new(Dtype::F32, [batch, tokens, width]);
    let g = &mut b.graph;
    let stride_of = |x: Tensor| g.shape(x).last().copied().unwrap_or(1);
    let (up, up_first) = g.columns_of(up);
    let up_stride = stride_of(up);
    let Some(gate) = gate else {
        let call = Activate { x: up, lengths, out, stride: up_stride, first: up_first, sizes };
        return b.module.call(g, isa, call, grid)[0];
    };
    let (gate, gate_first) = g.columns_of(gate);
    let call = ActivateGated {
        gate,
        up,
        lengths,
        out,
        quantized,
        gate_stride: stride_of(gate),
        gate_first,
        up_stride,
        up_first,
        limit: F32Bits(layer.limit.unwrap_or(f64::INFINITY)),
        up_offset: F32Bits(layer.up_offset),
        sizes,
    };
    let results = b.module.call(g, isa, call, grid);
    if let ([out, quantized @ ..], Some(activation)) = (results.as_slice(), activation)
        && !quantized.is_empty()
    {
        b.quantized.insert((*out, activation), quantized.to_vec());
    }
    results[0]
}
