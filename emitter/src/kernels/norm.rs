//! Calls of `norm.c`: norms of rows, alone or after an addition.

use super::arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction, arguments};
use crate::{graph::Tensor, types::TensorType};

/// A weight and a bias as the checkpoint has them. Without a bias, any tensor of the type stands for it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NormWeights {
    F32 { weight: Tensor, bias: Tensor },
    Bf16 { weight: Tensor, bias: Tensor },
    F16 { weight: Tensor, bias: Tensor },
}

impl NormWeights {
    /// Returns the functions that norm alone and after an addition.
    fn functions(self) -> [KernelFunction; 2] {
        let names = match self {
            Self::F32 { .. } => ["norm_f32", "add_norm_f32"],
            Self::Bf16 { .. } => ["norm_bf16", "add_norm_bf16"],
            Self::F16 { .. } => ["norm_f16", "add_norm_f16"],
        };
        names.map(|name| KernelFunction { file: "norm", name })
    }
}

impl Argument for NormWeights {
    fn add_to(self, arguments: &mut Arguments, _: &'static str) {
        let (Self::F32 { weight, bias } | Self::Bf16 { weight, bias } | Self::F16 { weight, bias }) = self;
        weight.add_to(arguments, "weight");
        bias.add_to(arguments, "bias");
    }
}

arguments! {
    /// Rows of a norm, and what the norm does.
    struct NormSizes {
        batch: usize,
        tokens: usize,
        width: usize,
        biased: bool,
        /// Whether it is a layer norm.
        centered: bool,
        epsilon: F32Bits,
        offset: F32Bits,
    }

    /// Norms `heads` parts of each row of `stride` elements, from element `first` on.
    struct NormRows {
        x: Tensor,
        operands: NormWeights,
        lengths: Tensor,
        out: TensorType,
        heads: usize,
        /// The number of weights: one, or one for each head.
        weights: usize,
        stride: usize,
        first: usize,
        sizes: NormSizes,
    }

    /// Computes `x + y · scale`, and its norm.
    struct AddNorm {
        x: Tensor,
        y: Tensor,
        operands: NormWeights,
        lengths: Tensor,
        sum: TensorType,
        out: TensorType,
        scale: F32Bits,
        sizes: NormSizes,
    }
}

impl Kernel for NormRows {
    fn function(&self) -> KernelFunction {
        self.operands.functions()[0]
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for AddNorm {
    fn function(&self) -> KernelFunction {
        self.operands.functions()[1]
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
