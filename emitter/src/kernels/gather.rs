//! Calls of `gather.c`: rows of tables.

use super::{
    arguments::{Argument, Arguments, Kernel, KernelFunction, arguments, kernels},
    groups::{FloatFormat, GroupFormat},
};
use crate::{graph::Tensor, types::TensorType};

/// Weights that are packed into panels of 16 rows, with their scales.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PanelTable {
    F32 { w: Tensor },
    Bf16 { w: Tensor },
    F16 { w: Tensor },
    Q8 { w: Tensor, w_scale: Tensor },
}

impl Argument for PanelTable {
    fn add_to(self, arguments: &mut Arguments, _: &'static str) {
        match self {
            Self::F32 { w } | Self::Bf16 { w } | Self::F16 { w } => w.add_to(arguments, "w"),
            Self::Q8 { w, w_scale } => {
                w.add_to(arguments, "w");
                w_scale.add_to(arguments, "w_scale");
            }
        }
    }
}

arguments! {
    /// Copies rows of `width` elements.
    struct GatherRows {
        table: Tensor,
        ids: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        out: TensorType,
        width: usize,
    }

    /// Looks up rows of panels whose rows are divided into parts of `step` elements.
    struct GatherPanels {
        table: PanelTable,
        ids: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        out: TensorType,
        width: usize,
        step: usize,
    }

    /// Looks up rows of panels of weights in groups.
    struct GatherGroups {
        w: Tensor,
        w_scale: Tensor,
        ids: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        out: TensorType,
        width: usize,
        format: GroupFormat,
    }

    /// Looks up rows of panels of weights whose codes are floating-point numbers.
    struct GatherFloats {
        w: Tensor,
        w_scale: Tensor,
        ids: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        out: TensorType,
        width: usize,
        format: FloatFormat,
    }
}

kernels! {
    GatherRows => "gather", "gather_rows";
    GatherGroups => "gather", "gather_groups";
}

impl Kernel for GatherFloats {
    fn function(&self) -> KernelFunction {
        match self.format.list {
            Some(_) => KernelFunction { file: "matmul_f4", name: "gather_f4" },
            None => KernelFunction { file: "matmul_e4m3", name: "gather_e4m3" },
        }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for GatherPanels {
    fn function(&self) -> KernelFunction {
        let name = match self.table {
            PanelTable::F32 { .. } => "gather_panels_f32",
            PanelTable::Bf16 { .. } => "gather_panels_bf16",
            PanelTable::F16 { .. } => "gather_panels_f16",
            PanelTable::Q8 { .. } => "gather_panels_q8",
        };
        KernelFunction { file: "gather", name }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
