//! Calls of `quantize.c`, which quantizes activations to 8 bits.

use super::arguments::{Argument, Arguments, arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Quantizes rows of `k` elements, with one scale each.
    struct QuantizeRows {
        x: Tensor,
        q: TensorType,
        scale: TensorType,
        k: usize,
    }

    /// Quantizes groups of 32 elements in rows of `k`, with a scale and the sums of both halves for each. A row becomes the sum
    /// of `terms` rows.
    struct QuantizeGroups {
        x: Tensor,
        q: TensorType,
        scale: TensorType,
        sums: TensorType,
        k: usize,
        terms: usize,
    }
}

/// Results of a kernel that quantizes what it computed, as [`QuantizeRows`] and [`QuantizeGroups`] do.
#[derive(Debug, Clone)]
pub(crate) enum QuantizedResults {
    /// The kernel does not quantize.
    None,
    Q8 {
        q: TensorType,
        scale: TensorType,
    },
    Q4 {
        q: TensorType,
        scale: TensorType,
        sums: TensorType,
        terms: usize,
    },
}

impl QuantizedResults {
    /// Returns the function of a kernel without these results, with those of rows, or with those of groups.
    pub(super) fn choose<T: Copy>(&self, [none, q8, q4]: [T; 3]) -> T {
        match self {
            Self::None => none,
            Self::Q8 { .. } => q8,
            Self::Q4 { .. } => q4,
        }
    }
}

impl Argument for QuantizedResults {
    fn add_to(self, arguments: &mut Arguments, _: &'static str) {
        match self {
            Self::None => {}
            Self::Q8 { q, scale } => {
                q.add_to(arguments, "q");
                scale.add_to(arguments, "q_scale");
            }
            Self::Q4 { q, scale, sums, terms } => {
                q.add_to(arguments, "q");
                scale.add_to(arguments, "q_scale");
                sums.add_to(arguments, "q_sums");
                terms.add_to(arguments, "terms");
            }
        }
    }
}

kernels! {
    QuantizeRows => "quantize", "quantize_rows";
    QuantizeGroups => "quantize", "quantize_groups";
}
