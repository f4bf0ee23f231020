//! Calls of `panels.c`, which packs weights into panels ahead of time.

use safetensors::Dtype;

use super::arguments::{Argument, Arguments, Kernel, KernelFunction, arguments};
use crate::{graph::Tensor, types::TensorType};

/// Rows of weights by the type of what stays together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PanelRows {
    F32(Tensor),
    Bf16(Tensor),
    F16(Tensor),
    Bf16Pairs(Tensor),
}

impl PanelRows {
    /// Returns rows of a type; `None` for one that no kernel packs.
    pub(crate) fn new(w: Tensor, dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F32 => Some(Self::F32(w)),
            Dtype::BF16 => Some(Self::Bf16(w)),
            Dtype::F16 => Some(Self::F16(w)),
            _ => None,
        }
    }
}

impl Argument for PanelRows {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        let (Self::F32(w) | Self::Bf16(w) | Self::F16(w) | Self::Bf16Pairs(w)) = self;
        w.add_to(arguments, name);
    }
}

arguments! {
    /// Packs `rows` rows of `k` elements, or pairs of them, into panels of 16 rows.
    struct PackPanels {
        w: PanelRows,
        out: TensorType,
        rows: usize,
        k: usize,
    }
}

impl Kernel for PackPanels {
    fn function(&self) -> KernelFunction {
        let name = match self.w {
            PanelRows::F32(_) => "panels_f32",
            PanelRows::Bf16(_) => "panels_bf16",
            PanelRows::F16(_) => "panels_f16",
            PanelRows::Bf16Pairs(_) => "panels_bf16_pairs",
        };
        KernelFunction { file: "panels", name }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
