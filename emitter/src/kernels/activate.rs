//! Calls of `activate.c`: activations of rows, alone or with a second factor.

use super::{
    arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction, arguments, kernels},
    quantize::QuantizedResults,
};
use crate::{graph::Tensor, types::TensorType};

/// The functions of `activate.c`, each with its number there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ActivationKind {
    /// `x · sigmoid(steepness · x)`.
    Sigmoid = 0,
    /// GELU with the error function.
    Erf = 1,
    /// GELU with `tanh`.
    Tanh = 2,
}

impl Argument for ActivationKind {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        (self as usize).add_to(arguments, name);
    }
}

arguments! {
    /// Rows of an activation, and the function.
    struct ActivateSizes {
        batch: usize,
        tokens: usize,
        width: usize,
        /// Elements of an item.
        chunk: usize,
        kind: ActivationKind,
        steepness: F32Bits,
    }

    /// Computes a function of `width` elements of rows of `stride`, from element `first` on.
    struct Activate {
        x: Tensor,
        lengths: Tensor,
        out: TensorType,
        stride: usize,
        first: usize,
        sizes: ActivateSizes,
    }

    /// Computes a function of gates, times up, and quantizes it.
    struct ActivateGated {
        gate: Tensor,
        up: Tensor,
        lengths: Tensor,
        out: TensorType,
        quantized: QuantizedResults,
        gate_stride: usize,
        gate_first: usize,
        up_stride: usize,
        up_first: usize,
        limit: F32Bits,
        up_offset: F32Bits,
        sizes: ActivateSizes,
    }
}

kernels! {
    Activate => "activate", "activate";
}

impl Kernel for ActivateGated {
    fn function(&self) -> KernelFunction {
        let names = ["activate_gated", "activate_gated_q8", "activate_gated_q4"];
        KernelFunction { file: "activate", name: self.quantized.choose(names) }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
