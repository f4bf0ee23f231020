//! Products of a single row by kernels of a GPU, which read weights as checkpoints have them, or as
//! [`quantized`] makes them. Generated code needs one dispatch for each weight, and those cost more than
//! their work.

use mlxcel_artifacts::Quant;
use safetensors::Dtype;

use super::{
    Builder, Matrix,
    linear::{Named, alike},
    quantized,
};
use crate::{Isa, Tensor, TensorType, kernels::Executable};

/// Threads of a workgroup, warps of them, and outputs that some of these have together: as in `kernels/cuda/matvec.h`.
const THREADS: usize = 256;
const WARPS: usize = THREADS / 32;
const OUTPUTS: usize = 2;

/// Matrices of a call at most.
const MATRICES: usize = 3;

/// Workgroups that give every part of a large GPU some work, several times.
const WORKGROUPS: usize = 512;

/// A kernel of `kernels/cuda/matvec_<type>.c`.
struct Kernel {
    file: &'static str,
    /// For one matrix, two and three.
    functions: [&'static str; MATRICES],
    /// Inputs that it reads at once.
    vector: usize,
}

/// A kernel's names.
macro_rules! kernel {
    ($file:literal, $vector:literal) => {
        Kernel {
            file: $file,
            functions: [
                concat!("cuda_", $file, "_1"),
                concat!("cuda_", $file, "_2"),
                concat!("cuda_", $file, "_3"),
            ],
            vector: $vector,
        }
    };
}

/// The element type of the first of them.
fn dtype(b: &Builder<'_>, layers: &[Named<'_>]) -> Dtype {
    layers.first().map_or(Dtype::F32, |(_, layer)| b.dtype(&layer.weight))
}

/// The kernel for weights of a type.
fn kernel(quant: Quant, dtype: Dtype) -> Option<Kernel> {
    Some(match (quant, dtype) {
        (Quant::Q8, _) => kernel!("matvec_q8", 16),
        (Quant::Q4, _) => kernel!("matvec_q4", 32),
        (Quant::None, Dtype::F32) => kernel!("matvec_f32", 4),
        (Quant::None, Dtype::BF16) => kernel!("matvec_bf16", 8),
        (Quant::None, Dtype::F16) => kernel!("matvec_f16", 8),
        (Quant::None, _) => return None,
    })
}

/// The instruction set of the kernels for these products; none where there is more than one row, or a weight that they do
/// not read.
pub(super) fn isa(b: &Builder<'_>, layers: &[Named<'_>], x: Tensor) -> Option<Isa> {
    let isa = b.numerics.gpu?;
    let (rows, inputs) = match *b.graph.shape(x) {
        [batch, tokens, inputs] => (batch * tokens, inputs),
        _ => return None,
    };
    let vector = kernel(b.quant, dtype(b, layers))?.vector;
    let plain = |(_, layer): &Named<'_>| layer.matrix.is_none() && !layer.transposed;
    let as_they_are = alike(b, layers) && layers.iter().all(plain);
    let reads = inputs.is_multiple_of(vector) && (as_they_are || b.quant != Quant::None);
    (rows == 1 && reads).then_some(isa)
}

/// `[1, 1, inputs]` → `[1, 1, outputs of the tensor]` for each layer's tensor.
pub(super) fn products(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    layers.chunks(MATRICES).flat_map(|layers| product(b, isa, layers, x)).collect()
}

fn product(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    let names: Vec<_> = layers.iter().map(|(name, _)| *name).collect();
    let Some(kernel) = kernel(b.quant, dtype(b, layers)) else { return vec![x; layers.len()] };
    b.scope(&names.join("+"), |b| {
        let inputs = b.graph.shape(x).last().copied().unwrap_or(1);
        let mut operands = vec![b.graph.reshape(x, &[inputs])];
        for (_, layer) in layers {
            match b.quant {
                Quant::None => operands.push(b.stored(&layer.weight)),
                Quant::Q8 | Quant::Q4 => operands.extend(quantized::packed(b, Matrix::from(*layer))),
            }
        }
        let outputs: Vec<_> = layers.iter().map(|(_, layer)| layer.weight_outputs()).collect();
        let all: usize = outputs.iter().sum();
        let workgroups = |split: usize| all.div_ceil(WARPS / split * OUTPUTS);
        let split =
            [1, 2, 4, WARPS].into_iter().find(|&split| workgroups(split) >= WORKGROUPS).unwrap_or(WARPS);
        let executable = Executable {
            isa,
            file: kernel.file,
            function: kernel.functions[layers.len() - 1],
            operands: operands.iter().map(|&operand| b.graph.type_of(operand)).collect(),
            cache: 0..0,
            results: outputs.iter().map(|&outputs| TensorType::new(Dtype::F32, [outputs])).collect(),
            numbers: 0,
            sizes: outputs.iter().copied().chain([inputs, split]).collect(),
            items: workgroups(split),
            grain: THREADS,
        };
        let made = b.module.call(&mut b.graph, executable, &operands, &[]);
        made.into_iter().zip(outputs).map(|(y, outputs)| b.graph.reshape(y, &[1, 1, outputs])).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::cuda::stated;

    #[test]
    fn what_kernels_state_is_what_is_given_to_them() {
        for (quant, dtype) in [
            (Quant::Q8, Dtype::F32),
            (Quant::Q4, Dtype::F32),
            (Quant::None, Dtype::F32),
            (Quant::None, Dtype::BF16),
            (Quant::None, Dtype::F16),
        ] {
            let file = kernel(quant, dtype).unwrap().file;
            let found = ["threads", "outputs", "matrices"].map(|name| stated(file, name));
            assert_eq!(found, [THREADS, OUTPUTS, MATRICES].map(Some), "{file}");
        }
    }
}
