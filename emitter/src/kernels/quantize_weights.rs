//! Calls of `quantize_superblocks.c` and `quantize_halves.c`, which quantize weights ahead of time.

use safetensors::Dtype;

use super::arguments::{Argument, Arguments, Kernel, KernelFunction, arguments};
use crate::{graph::Tensor, types::TensorType};

/// Rows of weights by their element type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WeightRows {
    F32(Tensor),
    Bf16(Tensor),
    F16(Tensor),
}

impl WeightRows {
    /// Returns rows of a type; `None` for one that no kernel reads.
    pub(crate) fn new(x: Tensor, dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F32 => Some(Self::F32(x)),
            Dtype::BF16 => Some(Self::Bf16(x)),
            Dtype::F16 => Some(Self::F16(x)),
            _ => None,
        }
    }
}

impl Argument for WeightRows {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        let (Self::F32(x) | Self::Bf16(x) | Self::F16(x)) = self;
        x.add_to(arguments, name);
    }
}

arguments! {
    /// Quantizes rows of `k` weights to superblocks of codes of 4 or 5 bits.
    struct QuantizeSuperblocks {
        x: WeightRows,
        /// The factor of the squared error of each input.
        importance: Tensor,
        codes: TensorType,
        unit: TensorType,
        least: TensorType,
        scales: TensorType,
        minima: TensorType,
        k: usize,
        bits: usize,
    }

    /// Quantizes rows of `k` weights to superblocks of codes of 6 bits, with scales of halves of groups.
    struct QuantizeHalves {
        x: WeightRows,
        /// The factor of the squared error of each input.
        importance: Tensor,
        codes: TensorType,
        unit: TensorType,
        scales: TensorType,
        k: usize,
    }
}

impl Kernel for QuantizeSuperblocks {
    fn function(&self) -> KernelFunction {
        let name = match self.x {
            WeightRows::F32(_) => "quantize_superblocks_f32",
            WeightRows::Bf16(_) => "quantize_superblocks_bf16",
            WeightRows::F16(_) => "quantize_superblocks_f16",
        };
        KernelFunction { file: "quantize_superblocks", name }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for QuantizeHalves {
    fn function(&self) -> KernelFunction {
        let name = match self.x {
            WeightRows::F32(_) => "quantize_halves_f32",
            WeightRows::Bf16(_) => "quantize_halves_bf16",
            WeightRows::F16(_) => "quantize_halves_f16",
        };
        KernelFunction { file: "quantize_halves", name }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
