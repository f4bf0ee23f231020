//! Products of several rows by kernels on GPUs.

use mlxcel_models::Linear;
use safetensors::Dtype;

use super::{named::Named, quantized::stored, row_product::RowsProduct, vector::vector};
use crate::{
    graph::Tensor,
    kernels::{
        CudaMatmul, CudaMatmulGated, CudaMatmulSum, CudaMatrix, Isa, MAX_MATRICES, MatvecActivation,
        MatvecBias, MatvecGate, MatvecWeights, Tiles, element_number,
    },
    layers::{builder::Builder, weights::Matrix},
    types::TensorType,
};

/// Kernels require a multiple of so many inputs, and of outputs unless they are those of packed weights, summed at once and
/// without gates.
pub(in crate::layers) const WHOLE_INPUTS: usize = 32;
const WHOLE_OUTPUTS: usize = 8;

/// The number of workgroups that keeps a large GPU busy, and the most that splitting makes of fewer.
const BUSY: usize = 128;
const MAX_SPLIT: usize = 256;

/// The fewest inputs of a part of a product, for which adding the parts pays.
const MIN_PART: usize = 512;

/// The fewest inputs for which large tiles with parts are faster than medium ones.
const LONG: usize = 4096;

/// Returns whether kernels multiply several rows of so many inputs by these tensors.
///
/// Rows of `f32` are not sums of few numbers in f16, which end at 65504. Weights in bf16 are not exact in f16, and weights of
/// other types than the plan's precision are converted.
pub(super) fn takes(b: &Builder<'_>, weights: MatvecWeights, layers: &[Named<'_>], inputs: usize) -> bool {
    // Rows of `f32` are sums of several terms in bf16.
    let has_type =
        takes_rows(b, weights) || weights == MatvecWeights::Bf16 && b.operand_dtype() == Dtype::F32;
    let whole =
        |(_, layer): &Named<'_>| weights.is_packed() || layer.weight_outputs().is_multiple_of(WHOLE_OUTPUTS);
    has_type && inputs.is_multiple_of(WHOLE_INPUTS) && layers.iter().all(whole)
}

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs of the tensor]` for each layer's tensor. Returns whether the
/// products have their biases.
pub(super) fn products(
    b: &mut Builder<'_>,
    isa: Isa,
    weights: MatvecWeights,
    layers: &[Named<'_>],
    x: Tensor,
) -> (Vec<Tensor>, bool) {
    let &[batch, tokens, inputs] = b.graph.shape(x) else { return (vec![x; layers.len()], false) };
    let m = batch * tokens;
    let (rows, terms) = terms(b, weights, x, [m, inputs]);
    let bias_type = if terms == 1 { bias_type(b, layers) } else { MatvecBias::None };
    let calls = layers.chunks(MAX_MATRICES).flat_map(|layers| {
        let names: Vec<_> = layers.iter().map(|(name, _)| *name).collect();
        b.scope(&names.join("+"), |b| product(b, isa, weights, layers, (rows, terms, bias_type)))
    });
    let products: Vec<_> = calls.collect();
    let whole = products.into_iter().zip(layers).map(|(y, (_, layer))| {
        let outputs = b.graph.shape(y).last().copied().unwrap_or(1);
        let parts = b.product_parts.get(&y).copied();
        let y = b.graph.reshape(y, &[batch, tokens, outputs]);
        b.product_parts.extend(parts.map(|parts| (y, parts)));
        if terms == 1 {
            let (weight, scales) = stored(b, Matrix::from(*layer), &layer.weight);
            let bias = bias(b, layer, bias_type, rows);
            b.rows_products.insert(y, RowsProduct { weights, x: rows, weight, scales, bias, bias_type });
        }
        y
    });
    (whole.collect(), bias_type != MatvecBias::None)
}

/// Returns the type of the biases, if all of the layers have one, of one type.
fn bias_type(b: &Builder<'_>, layers: &[Named<'_>]) -> MatvecBias {
    let mut types = layers.iter().map(|(_, layer)| layer.bias.as_ref().map(|bias| b.dtype(bias)));
    let Some(Some(first)) = types.next() else { return MatvecBias::None };
    if types.all(|ty| ty == Some(first)) { MatvecBias::Of(element_number(first)) } else { MatvecBias::None }
}

/// Loads a layer's bias, or returns `none` if kernels add no biases.
fn bias(b: &mut Builder<'_>, layer: &Linear, bias_type: MatvecBias, none: Tensor) -> Tensor {
    match &layer.bias {
        Some(bias) if bias_type != MatvecBias::None => vector(b, bias).0,
        _ => none,
    }
}

/// Returns the activation of the products `gate` and `up`, `[batch, tokens, outputs]` in the type of their rows, if a kernel
/// computes all at once.
pub(super) fn gated(
    b: &mut Builder<'_>,
    isa: Isa,
    [gate, up]: [Tensor; 2],
    (activation, limits): (MatvecActivation, MatvecGate),
) -> Option<Tensor> {
    let shape = b.graph.shape(up).to_vec();
    let [gate, up] = [gate, up].map(|y| b.rows_products.get(&y).cloned());
    let (gate, up) = (gate?, up?);
    let (&[m, k], &n) = (b.graph.shape(gate.x), shape.last()?) else { return None };
    let is_whole = n.is_multiple_of(WHOLE_OUTPUTS);
    if !is_whole || gate.x != up.x || gate.weights != up.weights || gate.bias_type != up.bias_type {
        return None;
    }
    let weights = gate.weights;
    let (tiles, _) = division(weights, m, &[n, n], k);
    let out = TensorType::new(b.graph.dtype(gate.x), [m, n]);
    let bias_type = gate.bias_type;
    let x = gate.x;
    let matrices = [gate, up].map(|of| (of.weight, of.scales, of.bias));
    let call =
        CudaMatmulGated { weights, tiles, x, matrices, out, n, m, k, bias_type, activation, gate: limits };
    let grid = call.grid();
    let made = b.module.call(&mut b.graph, isa, call, grid)[0];
    Some(b.graph.reshape(made, &shape))
}

/// Returns rows in the type that kernels multiply, `[terms · rows, inputs]`: the terms of each row's sum, one after the other.
///
/// Rows of `f32` are the sums of three terms in bf16, which has eight bits of a number, to the last bit but one.
fn terms(b: &mut Builder<'_>, weights: MatvecWeights, x: Tensor, shape: [usize; 2]) -> (Tensor, usize) {
    let multiplied = if weights == MatvecWeights::F16 { Dtype::F16 } else { Dtype::BF16 };
    let rows = b.graph.reshape(x, &shape);
    // What the rows were widened from, if they were.
    let half = b.halves.get(&x).copied();
    if let Some(half) =
        half.filter(|&half| weights != MatvecWeights::F32 && b.graph.dtype(half) == multiplied)
    {
        return (half, 1);
    }
    // What a gated product made in the type of its rows may be multiplied by weights of another type.
    let is_wide = b.operand_dtype() == Dtype::F32 && b.graph.dtype(rows) == Dtype::F32;
    let g = &mut b.graph;
    match weights {
        MatvecWeights::F32 => (g.convert(rows, Dtype::F32), 1),
        MatvecWeights::F16 => (g.convert(rows, Dtype::F16), 1),
        MatvecWeights::Bf16 if is_wide => {
            let (mut rest, mut terms) = (rows, Vec::new());
            for _ in 0..3 {
                let term = g.convert(rest, Dtype::BF16);
                let back = g.convert(term, Dtype::F32);
                rest = g.subtract(rest, back);
                terms.push(term);
            }
            (g.concatenate(&terms, 0), 3)
        }
        // Integers of 8 bits are exact in bf16.
        MatvecWeights::Bf16 | MatvecWeights::Q8 | MatvecWeights::Q4 | MatvecWeights::Groups(_) => {
            (g.convert(rows, Dtype::BF16), 1)
        }
    }
}

/// Returns rows, `[…, inputs]`, in the type that kernels multiply by these weights, if they need no more than one term: as
/// `shape`, which is `[rows, inputs]`.
pub(in crate::layers) fn operand_rows(
    b: &mut Builder<'_>,
    weights: MatvecWeights,
    x: Tensor,
    shape: [usize; 2],
) -> Option<Tensor> {
    takes_rows(b, weights).then(|| terms(b, weights, x, shape).0)
}

/// Returns whether kernels multiply rows by weights of a type without dividing them into terms.
fn takes_rows(b: &Builder<'_>, weights: MatvecWeights) -> bool {
    let operand = b.operand_dtype();
    match weights {
        MatvecWeights::F32 => operand == Dtype::F32,
        MatvecWeights::F16 => operand == Dtype::F16,
        MatvecWeights::Bf16 => operand == Dtype::BF16,
        MatvecWeights::Q8 | MatvecWeights::Q4 | MatvecWeights::Groups(_) => true,
    }
}

/// Multiplies `[terms · rows, inputs]` by up to [`MAX_MATRICES`] tensors in one call, and adds the terms.
fn product(
    b: &mut Builder<'_>,
    isa: Isa,
    weights: MatvecWeights,
    layers: &[Named<'_>],
    (x, terms, bias_type): (Tensor, usize, MatvecBias),
) -> Vec<Tensor> {
    let &[m, k] = b.graph.shape(x) else { return vec![x; layers.len()] };
    let all: Vec<_> = layers.iter().map(|(_, layer)| layer.weight_outputs()).collect();
    let (tiles, splits) = division(weights, m, &all, k);
    // Parts of the inputs and terms of rows are added alike.
    let (rows, parts) = (m / terms, splits * terms);
    let matrix = |(_, layer): &Named<'_>| {
        let (weight, scales) = stored(b, Matrix::from(*layer), &layer.weight);
        let (bias, outputs) = (bias(b, layer, bias_type, x), layer.weight_outputs());
        CudaMatrix { weight, scales, bias, out: TensorType::new(Dtype::F32, [splits, m, outputs]), outputs }
    };
    let matrices = layers.iter().map(matrix).collect();
    let call = CudaMatmul { weights, tiles, x, matrices, m, k, splits, bias_type };
    let grid = call.grid();
    let made = b.module.call(&mut b.graph, isa, call, grid);
    let sums = made.into_iter().zip(all).map(|(product, outputs)| {
        if parts == 1 {
            return b.graph.reshape(product, &[m, outputs]);
        }
        let out = TensorType::new(Dtype::F32, [rows, outputs]);
        let sum = CudaMatmulSum { parts: product, out, count: rows * outputs, splits: parts };
        let grid = sum.grid();
        let parts = b.graph.reshape(product, &[parts, rows, outputs]);
        let sum = b.module.call(&mut b.graph, isa, sum, grid)[0];
        b.product_parts.insert(sum, parts);
        sum
    });
    sums.collect()
}

/// Returns the tiles of a product, and the parts of its inputs: measured on an H100 for the layers of Llama-3.2-1B.
fn division(weights: MatvecWeights, m: usize, outputs: &[usize], k: usize) -> (Tiles, usize) {
    let count = |tiles: Tiles| {
        let [rows, columns, _] = tiles.shape(weights);
        let columns: usize = outputs.iter().map(|n| n.div_ceil(columns)).sum();
        m.div_ceil(rows) * columns
    };
    let [small_rows, ..] = Tiles::Small.shape(weights);
    let tiles = if m <= small_rows {
        Tiles::Small
    } else if count(Tiles::Large) >= BUSY || k >= LONG && m > small_rows * 2 {
        Tiles::Large
    } else {
        Tiles::Medium
    };
    let found = count(tiles);
    let splits = [8, 4, 2].into_iter().find(|splits| found * splits <= MAX_SPLIT && k / splits >= MIN_PART);
    let is_whole = outputs.iter().all(|outputs| outputs.is_multiple_of(WHOLE_OUTPUTS));
    let pays = is_whole && outputs.len() == 1 && (tiles != Tiles::Medium || k >= LONG);
    (tiles, splits.filter(|_| pays).unwrap_or(1))
}
