//! Products of a single row by kernels on GPUs, with what comes before and after them.
//!
//! The kernels read weights as in the checkpoint, or as `quantized.rs` packs them. A dispatch costs more than the work of a
//! norm or an activation, so that they do these too: a product of a norm's result is computed from what was normalized, and
//! what adds or activates a product computes it again with that. What has no use any more is dropped from the function.

use mlxcel_models::{Activation, Mlp, Norm, NormKind, Weight};
use safetensors::Dtype;

use super::{
    gpu_matmul,
    named::{Named, have_one_form},
    quantized::stored,
    row_product::RowProduct,
    vector::vector,
};
use crate::{
    form::Form,
    graph::Tensor,
    group_form::GroupForm,
    kernels::{
        CudaExpertsAdd, Embed, F32Bits, Isa, MAX_MATRICES, Matvec, MatvecActivation, MatvecBias, MatvecGate,
        MatvecMatrix, MatvecProducts, MatvecRow, MatvecWeights, ROW_CAPACITY, row_norm_number,
    },
    layers::{builder::Builder, weights::Matrix},
    types::TensorType,
};

/// Returns how a weight is stored, if kernels read that.
pub(in crate::layers) fn row_weights(b: &Builder<'_>, weight: &Weight) -> Option<MatvecWeights> {
    Some(match (b.form(weight), b.dtype(weight)) {
        (Form::Rows, _) => MatvecWeights::Q8,
        (Form::Groups(GroupForm::Q4_0), _) => MatvecWeights::Q4,
        (Form::Groups(form), _) => MatvecWeights::Groups(form),
        (Form::Floats, Dtype::F32) => MatvecWeights::F32,
        (Form::Floats, Dtype::BF16) => MatvecWeights::Bf16,
        (Form::Floats, Dtype::F16) => MatvecWeights::F16,
        (Form::Floats, _) => return None,
    })
}

/// Returns the instruction set of the kernels for these products and how they read the weights, if they do.
pub(super) fn isa(b: &Builder<'_>, layers: &[Named<'_>], inputs: usize) -> Option<(Isa, MatvecWeights)> {
    let isa = b.numerics.gpu?;
    let weights = row_weights(b, &layers.first()?.1.weight)?;
    let vector = weights.vector();
    let is_whole = |(_, layer): &Named<'_>| layer.matrix.is_none();
    let are_floats = layers.iter().all(|(_, layer)| b.form(&layer.weight) == Form::Floats);
    let readable = inputs.is_multiple_of(vector)
        && have_one_form(b, layers)
        && (!are_floats || layers.iter().all(is_whole));
    readable.then_some((isa, weights))
}

/// Computes `[1, 1, inputs]` to `[1, 1, outputs]` for each layer, biases included. Layers of one tensor have ranges of its outputs.
pub(super) fn products(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    // The biases of a call are of one type.
    let bias_of = |b: &Builder<'_>, layer: &Named<'_>| layer.1.bias.as_ref().map(|bias| b.dtype(bias));
    let runs: Vec<_> = layers.chunk_by(|one, other| bias_of(b, one) == bias_of(b, other)).collect();
    let calls = runs.into_iter().flat_map(|run| run.chunks(MAX_MATRICES));
    calls.flat_map(|layers| product(b, isa, layers, x)).collect()
}

/// Multiplies by up to [`MAX_MATRICES`] tensors in one call.
fn product(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    let names: Vec<_> = layers.iter().map(|(name, _)| *name).collect();
    let first = layers.first().and_then(|(_, layer)| row_weights(b, &layer.weight));
    let Some(weights) = first else { return vec![x; layers.len()] };
    b.scope(&names.join("+"), |b| {
        let row = row(b, x);
        let inputs = b.graph.shape(x).last().copied().unwrap_or(1);
        let mut bias_type = MatvecBias::None;
        let mut matrix = |(_, layer): &Named<'_>| {
            let (weight, scales) = stored(b, Matrix::from(*layer), &layer.weight);
            let bias = layer.bias.as_ref().map(|bias| {
                let (tensor, ty) = vector(b, bias);
                bias_type = MatvecBias::Of(ty);
                tensor
            });
            let (bias, outputs) = (bias.unwrap_or(row.x), layer.outputs());
            let first = layer.part.map_or(0, |part| part.first);
            MatvecMatrix { weight, scales, bias, outputs, first }
        };
        let matrices: Vec<_> = layers.iter().map(&mut matrix).collect();
        let outputs: Vec<_> = matrices.iter().map(|matrix| matrix.outputs).collect();
        let products = MatvecProducts { weights, row, matrices, inputs, bias_type };
        let outs = outputs.iter().map(|&outputs| TensorType::new(Dtype::F32, [outputs])).collect();
        let MatvecProducts { matrices, .. } = products.clone();
        let made = call(b, isa, Matvec::Plain { products, outs });
        let results = made.into_iter().zip(matrices).map(|(y, matrix)| {
            let y = b.graph.reshape(y, &[1, 1, matrix.outputs]);
            b.row_products.insert(y, RowProduct { weights, row, matrix, inputs, bias_type });
            y
        });
        results.collect()
    })
}

/// Calls the kernel.
fn call(b: &mut Builder<'_>, isa: Isa, matvec: Matvec) -> Vec<Tensor> {
    let grid = matvec.grid();
    b.module.call(&mut b.graph, isa, matvec, grid)
}

/// Returns the row that a product of `x`, `[1, 1, inputs]`, reads: `x`, or what it is the norm of.
pub(in crate::layers) fn row(b: &mut Builder<'_>, x: Tensor) -> MatvecRow {
    let inputs = b.graph.shape(x).last().copied().unwrap_or(1);
    let known =
        b.norms.get(&x).cloned().filter(|(_, layer)| inputs <= ROW_CAPACITY && layer.shape() == [inputs]);
    let Some((source, layer)) = known else {
        let x = b.graph.reshape(x, &[inputs]);
        let none = F32Bits(0.0);
        return MatvecRow {
            x,
            norm_weight: x,
            norm_bias: x,
            norm: 0,
            norm_type: 0,
            epsilon: none,
            offset: none,
        };
    };
    let x = b.graph.reshape(source, &[inputs]);
    let Norm { kind: _, epsilon, offset, weights, bias } = &layer;
    let all: Vec<_> = weights.iter().chain(bias).map(|weight| vector(b, weight)).collect();
    let norm_type = all[0].1;
    MatvecRow {
        x,
        norm_weight: all[0].0,
        norm_bias: all.last().unwrap_or(&all[0]).0,
        norm: row_norm_number(&layer),
        norm_type,
        epsilon: F32Bits(*epsilon),
        offset: F32Bits(*offset),
    }
}

/// Returns whether kernels compute a norm with the product after it.
pub(in crate::layers) fn takes_norm(b: &Builder<'_>, layer: &Norm) -> bool {
    let mut types = layer.weights.iter().chain(&layer.bias).map(|weight| b.dtype(weight));
    let first = types.next();
    let is_known = layer.kind == NormKind::Layer || layer.bias.is_none();
    b.numerics.gpu.is_some() && layer.weights.len() == 1 && is_known && types.all(|ty| Some(ty) == first)
}

/// Returns `residual + factor · product`, if a kernel computes both at once. The product may be that of a mixture.
pub(in crate::layers) fn added(
    b: &mut Builder<'_>,
    product: Tensor,
    residual: Tensor,
    factor: f64,
) -> Option<Tensor> {
    let isa = b.numerics.gpu?;
    let shape = b.graph.shape(residual).to_vec();
    if let Some(sum) = b.expert_sums.get(&product).cloned() {
        let outputs = sum.matrices.outputs;
        if shape != [1, 1, outputs] {
            return None;
        }
        let residual = b.graph.reshape(residual, &[outputs]);
        let sum = CudaExpertsAdd { residual, factor: F32Bits(factor), ..sum };
        let grid = sum.grid();
        let sum = b.module.call(&mut b.graph, isa, sum, grid)[0];
        return Some(b.graph.reshape(sum, &shape));
    }
    let RowProduct { weights, row, matrix, inputs, bias_type } = b.row_products.get(&product)?.clone();
    if row.norm != 0 || shape != [1, 1, matrix.outputs] {
        return None;
    }
    let products = MatvecProducts { weights, row, matrices: vec![matrix], inputs, bias_type };
    let residual = b.graph.reshape(residual, &[matrix.outputs]);
    let out = TensorType::new(Dtype::F32, [matrix.outputs]);
    let sum = call(b, isa, Matvec::Added { products, residual, out, factor: F32Bits(factor) })[0];
    Some(b.graph.reshape(sum, &shape))
}

/// Returns the activation of the products `gate`, if there is one, and `up`, if a kernel computes all at once.
pub(in crate::layers) fn activated(
    b: &mut Builder<'_>,
    layer: &Mlp,
    gate: Option<Tensor>,
    up: Tensor,
) -> Option<Tensor> {
    let isa = b.numerics.gpu?;
    let (activation, limits) = gating(layer);
    let Some(RowProduct { weights, row, matrix, inputs, bias_type }) = b.row_products.get(&up).cloned()
    else {
        return gpu_matmul::gated(b, isa, [gate?, up], (activation, limits));
    };
    let outputs = matrix.outputs;
    let out = TensorType::new(Dtype::F32, [outputs]);
    let matvec = match gate {
        None => {
            let products = MatvecProducts { weights, row, matrices: vec![matrix], inputs, bias_type };
            Matvec::Activated { products, out, activation }
        }
        Some(gate) => {
            let gate = b.row_products.get(&gate)?.clone();
            if gate.row.x != row.x || gate.weights != weights || gate.bias_type != bias_type {
                return None;
            }
            let matrices = vec![gate.matrix, matrix];
            let products = MatvecProducts { weights, row, matrices, inputs, bias_type };
            Matvec::Gated { products, out, activation, gate: limits }
        }
    };
    let made = call(b, isa, matvec)[0];
    Some(b.graph.reshape(made, &[1, 1, outputs]))
}

/// Returns the activation of an MLP, and the limits of its gate.
pub(in crate::layers) fn gating(layer: &Mlp) -> (MatvecActivation, MatvecGate) {
    let (activation, steepness) = match layer.activation {
        Activation::Silu => (0, 1.0),
        Activation::Swish { beta } => (1, beta),
        Activation::Gelu => (2, 0.0),
        Activation::GeluTanh => (3, 0.0),
    };
    let activation = MatvecActivation { activation, steepness: F32Bits(steepness) };
    let limit = F32Bits(layer.limit.unwrap_or(f64::INFINITY));
    (activation, MatvecGate { limit, up_offset: F32Bits(layer.up_offset) })
}

/// Looks up rows of an embedding table, `[…]` to `[…, width]`, times `scale`, if a kernel reads it.
pub(super) fn rows(b: &mut Builder<'_>, weight: &Weight, tokens: Tensor, scale: f64) -> Option<Tensor> {
    let isa = b.numerics.gpu?;
    let (kind, &[vocab, width]) = (row_weights(b, weight)?, weight.shape.as_slice()) else { return None };
    if !width.is_multiple_of(kind.vector()) {
        return None;
    }
    let (table, scales) = stored(b, weight.into(), weight);
    let mut shape = b.graph.shape(tokens).to_vec();
    let count = shape.iter().product();
    let tokens = b.graph.reshape(tokens, &[count]);
    shape.push(width);
    let out = TensorType::new(Dtype::F32, [count, width]);
    let embed = Embed { weights: kind, tokens, table, scales, out, width, vocab, scale: F32Bits(scale) };
    let rows = b.module.call(&mut b.graph, isa, embed, Embed::grid(count))[0];
    Some(b.graph.reshape(rows, &shape))
}
