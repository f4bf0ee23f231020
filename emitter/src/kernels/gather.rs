//! Calls of `gather.c`: rows of tables.

use super::arguments::{Argument, Arguments, Kernel, KernelFunction, arguments, kernels};
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
    /// Inputs of weights in groups that share scales, and the scales' type as C numbers it.
    struct GroupSizes {
        group: usize,
        scale_type: usize,
    }

    /// How weights are stored in groups; `groups.h` numbers the forms.
    struct GroupFormat {
        bits: usize,
        form: usize,
        sizes: GroupSizes,
    }

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

    /// Looks up rows of panels of 4-bit weights.
    struct GatherQ4Panels {
        w: Tensor,
        w_scale: Tensor,
        ids: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        out: TensorType,
        width: usize,
        format: GroupFormat,
    }
}

impl GroupSizes {
    /// Scales in `f16` for each group of 32 inputs.
    pub(super) const F16: Self = Self { group: 32, scale_type: 2 };
}

impl GroupFormat {
    /// GGUF's `Q4_0`.
    pub(crate) const Q4: Self = Self { bits: 4, form: 0, sizes: GroupSizes::F16 };
}

kernels! {
    GatherRows => "gather", "gather_rows";
    GatherQ4Panels => "gather", "gather_groups";
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
