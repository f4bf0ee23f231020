//! Norms by kernels.

use mlxcel_models::{Norm, NormKind};
use safetensors::Dtype;

use crate::{
    graph::Tensor,
    kernels::{AddNorm, F32Bits, Grid, Isa, NormRows, NormSizes, NormWeights},
    layers::{builder::Builder, linear::panels::quantized_results},
    types::TensorType,
};

/// Elements of a workgroup, if its rows are not longer: fewer would not be worth a workgroup.
const WORKGROUP_ELEMENTS: usize = 8192;

/// Normalizes each of `heads` parts of rows: `[batch, tokens, heads · width]` to the same shape. Returns nothing if the
/// weights do not fit the kernel.
pub(super) fn norm(b: &mut Builder<'_>, isa: Isa, layer: &Norm, x: Tensor, heads: usize) -> Option<Tensor> {
    let &[batch, tokens, row] = b.graph.shape(x) else { return None };
    let width = row.checked_div(heads)?;
    let Stored { weights, operands } = stored(b, layer, [heads, width])?;
    let (x, first) = b.graph.columns_of(x);
    let call = NormRows {
        x,
        operands,
        lengths: b.lengths(batch, tokens),
        out: TensorType::new(Dtype::F32, [batch, tokens, row]),
        heads,
        weights,
        stride: *b.graph.shape(x).last()?,
        first,
        sizes: sizes(layer, [batch, tokens, width]),
    };
    Some(b.module.call(&mut b.graph, isa, call, grid(batch * tokens, row))[0])
}

/// Computes `x + y · scale` and its norm. Returns nothing if the weights do not fit the kernel.
pub(super) fn add_norm(
    b: &mut Builder<'_>,
    isa: Isa,
    layer: &Norm,
    [x, y]: [Tensor; 2],
    scale: f64,
) -> Option<[Tensor; 2]> {
    let &[batch, tokens, width] = b.graph.shape(x) else { return None };
    let Stored { operands, .. } = stored(b, layer, [1, width])?;
    let activation = b.activation();
    let row_type = TensorType::new(Dtype::F32, [batch, tokens, width]);
    let call = AddNorm {
        x,
        y,
        operands,
        lengths: b.lengths(batch, tokens),
        sum: row_type.clone(),
        out: row_type,
        quantized: quantized_results(b, activation, isa, [batch, tokens, width]),
        scale: F32Bits(scale),
        sizes: sizes(layer, [batch, tokens, width]),
    };
    let results = b.module.call(&mut b.graph, isa, call, grid(batch * tokens, width));
    let &[sum, normed, ref quantized @ ..] = results.as_slice() else { return None };
    if let Some(activation) = activation.filter(|_| !quantized.is_empty()) {
        b.quantized.insert((normed, activation), quantized.to_vec());
    }
    Some([sum, normed])
}

fn grid(rows: usize, width: usize) -> Grid {
    Grid { items: rows, grain: (WORKGROUP_ELEMENTS / width.max(1)).clamp(1, rows.max(1)) }
}

fn sizes(layer: &Norm, [batch, tokens, width]: [usize; 3]) -> NormSizes {
    NormSizes {
        batch,
        tokens,
        width,
        biased: layer.bias.is_some(),
        centered: layer.kind == NormKind::Layer,
        epsilon: F32Bits(layer.epsilon),
        offset: F32Bits(layer.offset),
    }
}

/// The weights of a norm, as operands.
struct Stored {
    /// Their number: one, or one for each head.
    weights: usize,
    operands: NormWeights,
}

/// Loads weights for `heads` parts of `width` elements. Returns nothing if they have other sizes.
fn stored(b: &mut Builder<'_>, layer: &Norm, [heads, width]: [usize; 2]) -> Option<Stored> {
    let shape = layer.shape();
    let weights = if shape == [width] { 1 } else { heads };
    let fits = shape == [width] || shape == [heads, width];
    if !fits || layer.bias.as_ref().is_some_and(|bias| bias.shape != [width]) {
        return None;
    }
    let mut all = layer.weights.iter().chain(&layer.bias).map(|weight| b.dtype(weight));
    let first = all.next()?;
    let as_stored = matches!(first, Dtype::F32 | Dtype::BF16 | Dtype::F16) && all.all(|dtype| dtype == first);
    let load = |b: &mut Builder<'_>, weight| if as_stored { b.stored(weight) } else { b.weight_f32(weight) };
    let rows: Vec<_> = layer.weights.iter().map(|weight| load(b, weight)).collect();
    let weight = if let &[only] = rows.as_slice() { only } else { b.graph.concatenate(&rows, 0) };
    let bias = layer.bias.as_ref().map_or(weight, |bias| load(b, bias));
    let operands = match if as_stored { first } else { Dtype::F32 } {
        Dtype::BF16 => NormWeights::Bf16 { weight, bias },
        Dtype::F16 => NormWeights::F16 { weight, bias },
        _ => NormWeights::F32 { weight, bias },
    };
    Some(Stored { weights, operands })
}
