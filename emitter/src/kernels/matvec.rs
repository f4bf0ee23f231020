//! Calls of `cuda/matvec_*.c`: products of a single row.

use super::arguments::{Argument, Arguments, Kernel, KernelFunction};
use crate::{graph::Tensor, types::TensorType};

/// The most matrices of one call.
pub(crate) const MAX_MATRICES: usize = 3;

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatvecWeights {
    F32,
    Bf16,
    F16,
    Q8,
    Q4,
}

impl MatvecWeights {
    /// Returns the file of its kernels, and their functions for one, two and three matrices.
    fn functions(self) -> (&'static str, [&'static str; MAX_MATRICES]) {
        macro_rules! names {
            ($file:literal) => {
                (
                    $file,
                    [
                        concat!("cuda_", $file, "_1"),
                        concat!("cuda_", $file, "_2"),
                        concat!("cuda_", $file, "_3"),
                    ],
                )
            };
        }
        match self {
            Self::F32 => names!("matvec_f32"),
            Self::Bf16 => names!("matvec_bf16"),
            Self::F16 => names!("matvec_f16"),
            Self::Q8 => names!("matvec_q8"),
            Self::Q4 => names!("matvec_q4"),
        }
    }

    /// Returns the file of its kernels.
    #[cfg(test)]
    pub(crate) fn file(self) -> &'static str {
        self.functions().0
    }

    /// Returns how many inputs a thread reads at once.
    pub(crate) fn vector(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 8,
            Self::Q8 => 16,
            Self::Q4 => 32,
        }
    }
}

/// A matrix of a call, with its result.
#[derive(Debug, Clone)]
pub(crate) struct MatvecMatrix {
    pub(crate) weight: Tensor,
    /// The scales of quantized weights.
    pub(crate) scales: Option<Tensor>,
    pub(crate) out: TensorType,
    pub(crate) outputs: usize,
}

/// Multiplies one row by up to [`MAX_MATRICES`] matrices. Each `split` warps share some outputs.
#[derive(Debug, Clone)]
pub(crate) struct Matvec {
    pub(crate) weights: MatvecWeights,
    pub(crate) x: Tensor,
    pub(crate) matrices: Vec<MatvecMatrix>,
    pub(crate) inputs: usize,
    pub(crate) split: usize,
}

impl Kernel for Matvec {
    fn function(&self) -> KernelFunction {
        let (file, names) = self.weights.functions();
        KernelFunction { file, name: names[self.matrices.len() - 1] }
    }

    fn arguments(self) -> Arguments {
        const WEIGHTS: [&str; MAX_MATRICES] = ["w0", "w1", "w2"];
        const SCALES: [&str; MAX_MATRICES] = ["s0", "s1", "s2"];
        const RESULTS: [&str; MAX_MATRICES] = ["out0", "out1", "out2"];
        const OUTPUTS: [&str; MAX_MATRICES] = ["n0", "n1", "n2"];
        let mut arguments = Arguments::default();
        self.x.add_to(&mut arguments, "x");
        for (index, MatvecMatrix { weight, scales, out, outputs }) in self.matrices.into_iter().enumerate() {
            weight.add_to(&mut arguments, WEIGHTS[index]);
            if let Some(scales) = scales {
                scales.add_to(&mut arguments, SCALES[index]);
            }
            out.add_to(&mut arguments, RESULTS[index]);
            outputs.add_to(&mut arguments, OUTPUTS[index]);
        }
        self.inputs.add_to(&mut arguments, "inputs");
        self.split.add_to(&mut arguments, "split");
        arguments
    }
}
