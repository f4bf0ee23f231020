//! Calls of `norm.c`: norms of rows, alone or after an addition.

use super::{
    arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction, arguments},
    quantize::QuantizedResults,
};
use crate::{graph::Tensor, types::TensorType};

/// A weight and a bias as the checkpoint has them. Without a bias, any tensor of the type stands for it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NormWeights {
    F32 { weight: Tensor, bias: Tensor },
    Bf16 { weight: Tensor, bias: Tensor },
    F16 { weight: Tensor, bias: Tensor },
}

impl NormWeights {
    /// Returns the one of three functions for the weights' type.
    fn function(self, [f32, bf16, f16]: [&'static str; 3]) -> KernelFunction {
        let name = match self {
            Self::F32 { .. } => f32,
            Self::Bf16 { .. } => bf16,
            Self::F16 { .. } => f16,
        };
        KernelFunction { file: "norm", name }
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

    /// Computes `x + y · scale` and its norm, and quantizes the norm.
    struct AddNorm {
        x: Tensor,
        y: Tensor,
        operands: NormWeights,
        lengths: Tensor,
        sum: TensorType,
        out: TensorType,
        quantized: QuantizedResults,
        scale: F32Bits,
        sizes: NormSizes,
    }
}

impl Kernel for NormRows {
    fn function(&self) -> KernelFunction {
        self.operands.function(["norm_f32", "norm_bf16", "norm_f16"])
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for AddNorm {
    fn function(&self) -> KernelFunction {
        self.operands.function(self.quantized.choose([
            ["add_norm_f32", "add_norm_bf16", "add_norm_f16"],
            ["add_norm_q8_f32", "add_norm_q8_bf16", "add_norm_q8_f16"],
            ["add_norm_q4_f32", "add_norm_q4_bf16", "add_norm_q4_f16"],
        ]))
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
