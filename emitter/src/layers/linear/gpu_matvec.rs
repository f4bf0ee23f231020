//! Products of a single row by kernels on GPUs.
//!
//! They read weights as in the checkpoint, or as `quantized.rs` packs them, and multiply by several in one call. Generated
//! code needs one dispatch for each weight, which costs more than the work itself.

use safetensors::Dtype;

use super::{
    named::{Named, have_one_form},
    quantized,
};
use crate::{
    form::Form,
    graph::Tensor,
    kernels::{Grid, Isa, MAX_MATRICES, Matvec, MatvecMatrix, MatvecWeights},
    layers::{builder::Builder, weights::Matrix},
    types::TensorType,
};

/// Threads of a workgroup, and outputs that each warp has, as in `kernels/cuda/matvec.h`.
const THREADS: usize = 256;
const WARPS: usize = THREADS / 32;
const OUTPUTS: usize = 2;

/// The number of workgroups that keeps a large GPU busy.
const MIN_WORKGROUPS: usize = 512;

/// Returns how the layers' weights are stored, if kernels read that.
fn weights(b: &Builder<'_>, layers: &[Named<'_>]) -> Option<MatvecWeights> {
    let (_, first) = layers.first()?;
    Some(match (b.form(&first.weight), b.dtype(&first.weight)) {
        (Form::Rows, _) => MatvecWeights::Q8,
        (Form::Groups(_), _) => MatvecWeights::Q4,
        (Form::Floats, Dtype::F32) => MatvecWeights::F32,
        (Form::Floats, Dtype::BF16) => MatvecWeights::Bf16,
        (Form::Floats, Dtype::F16) => MatvecWeights::F16,
        (Form::Floats, _) => return None,
    })
}

/// Returns the instruction set of the kernels for these products, if there is a single row and they read these weights.
pub(super) fn isa(b: &Builder<'_>, layers: &[Named<'_>], x: Tensor) -> Option<Isa> {
    let isa = b.numerics.gpu?;
    let (rows, inputs) = match *b.graph.shape(x) {
        [batch, tokens, inputs] => (batch * tokens, inputs),
        _ => return None,
    };
    let vector = weights(b, layers)?.vector();
    let is_row_major = |(_, layer): &Named<'_>| layer.matrix.is_none() && !layer.transposed;
    let are_floats = layers.iter().all(|(_, layer)| b.form(&layer.weight) == Form::Floats);
    let readable = inputs.is_multiple_of(vector)
        && have_one_form(b, layers)
        && (!are_floats || layers.iter().all(is_row_major));
    (rows == 1 && readable).then_some(isa)
}

/// Computes `[1, 1, inputs]` to `[1, 1, outputs of the tensor]` for each layer's tensor.
pub(super) fn products(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    layers.chunks(MAX_MATRICES).flat_map(|layers| product(b, isa, layers, x)).collect()
}

/// Multiplies by up to [`MAX_MATRICES`] tensors in one call.
fn product(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    let names: Vec<_> = layers.iter().map(|(name, _)| *name).collect();
    let Some(weights) = weights(b, layers) else { return vec![x; layers.len()] };
    b.scope(&names.join("+"), |b| {
        let inputs = b.graph.shape(x).last().copied().unwrap_or(1);
        let x = b.graph.reshape(x, &[inputs]);
        let matrix = |(_, layer): &Named<'_>| {
            let (weight, scales) = match b.form(&layer.weight) {
                Form::Floats => (b.stored(&layer.weight), None),
                Form::Rows | Form::Groups(_) => {
                    let [weight, scales] = quantized::packed(b, Matrix::from(*layer));
                    (weight, Some(scales))
                }
            };
            let outputs = layer.weight_outputs();
            MatvecMatrix { weight, scales, out: TensorType::new(Dtype::F32, [outputs]), outputs }
        };
        let matrices: Vec<_> = layers.iter().map(matrix).collect();
        let all: usize = matrices.iter().map(|matrix| matrix.outputs).sum();
        let workgroups = |split: usize| all.div_ceil(WARPS / split * OUTPUTS);
        let split = [1, 2, 4, WARPS].into_iter().find(|&split| workgroups(split) >= MIN_WORKGROUPS);
        let split = split.unwrap_or(WARPS);
        let outputs: Vec<_> = matrices.iter().map(|matrix| matrix.outputs).collect();
        let matvec = Matvec { weights, x, matrices, inputs, split };
        let grid = Grid { items: workgroups(split), grain: THREADS };
        let made = b.module.call(&mut b.graph, isa, matvec, grid);
        made.into_iter().zip(outputs).map(|(y, outputs)| b.graph.reshape(y, &[1, 1, outputs])).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        for weights in [
            MatvecWeights::Q8,
            MatvecWeights::Q4,
            MatvecWeights::F32,
            MatvecWeights::Bf16,
            MatvecWeights::F16,
        ] {
            let found = ["threads", "outputs", "matrices"].map(|name| stated_constant(weights.file(), name));
            assert_eq!(found, [THREADS, OUTPUTS, MAX_MATRICES].map(Some), "{weights:?}");
        }
    }
}
