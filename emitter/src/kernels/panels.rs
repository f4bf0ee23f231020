//! Calls of `panels.c`, which packs weights into panels ahead of time.

use super::{
    arguments::{Arguments, Kernel, KernelFunction, arguments, kernels},
    quantize_weights::WeightRows,
};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Packs `rows` rows of `k` elements into panels of 16 rows.
    struct PackPanels {
        w: WeightRows,
        out: TensorType,
        rows: usize,
        k: usize,
    }

    /// Packs `rows` rows of `k` pairs of bf16 into panels of 16 rows.
    struct PackPairs {
        w: Tensor,
        out: TensorType,
        rows: usize,
        k: usize,
    }
}

kernels! {
    PackPairs => "panels", "panels_bf16_pairs";
}

impl Kernel for PackPanels {
    fn function(&self) -> KernelFunction {
        let name = match self.w {
            WeightRows::F32(_) => "panels_f32",
            WeightRows::Bf16(_) => "panels_bf16",
            WeightRows::F16(_) => "panels_f16",
        };
        KernelFunction { file: "panels", name }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
