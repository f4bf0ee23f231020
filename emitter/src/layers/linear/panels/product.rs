//! What products of all types of panels have in common.

use safetensors::Dtype;

use crate::{
    graph::Tensor,
    kernels::{Grid, Isa, Matmul, MatmulExperts, MatmulOperands},
    layers::{builder::Builder, weights::Weights},
    types::TensorType,
};

/// Bytes of panels that stay in a core's cache while a kernel goes through them with every row.
const CACHED_BYTES: usize = 256 << 10;

/// The most outputs of a workgroup. More would leave cores without work, and fewer would not be worth a workgroup.
const MAX_OUTPUTS: usize = 64;

/// The number of workgroups for a product of a single row, if it is large enough.
const MIN_WORKGROUPS: usize = 32;

/// How rows are sorted by expert.
#[derive(Clone, Copy)]
pub(in crate::layers) struct Segments {
    /// The expert of each segment.
    pub(in crate::layers) experts: Tensor,
    /// The first row of each segment, and the end of the last one.
    pub(in crate::layers) begins: Tensor,
}

/// Rows and the weights to multiply them by.
#[derive(Clone, Copy)]
pub(in crate::layers) struct ProductInputs<'w> {
    pub(in crate::layers) weights: Weights<'w>,
    /// `[batch, tokens, inputs]`.
    pub(in crate::layers) x: Tensor,
    /// If present, each row is multiplied by the weights of its expert.
    pub(in crate::layers) segments: Option<Segments>,
}

/// A product with packed weights.
pub(super) struct PackedProduct {
    pub(super) isa: Isa,
    pub(super) operands: MatmulOperands,
    pub(super) segments: Option<Segments>,
    /// Outputs of the weights, of one expert if there are several.
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    /// Outputs of a panel.
    pub(super) lanes: usize,
    pub(super) panel_bytes: usize,
}

impl PackedProduct {
    /// Calls the kernel for rows `[batch, tokens]`.
    pub(super) fn call(self, b: &mut Builder<'_>, batch: usize, tokens: usize) -> Tensor {
        let Self { isa, operands, segments, outputs: n, inputs: k, lanes, panel_bytes } = self;
        let panels = n.div_ceil(lanes);
        let grain_of_single_rows = outputs_per_workgroup(n) / lanes;
        let grain_in_cache = (CACHED_BYTES / panel_bytes.max(1)).clamp(1, MAX_OUTPUTS / lanes);
        let grain = |single: bool| if single { grain_of_single_rows } else { grain_in_cache };
        let out = TensorType::new(Dtype::F32, [batch, tokens, n]);
        let results = match segments {
            Some(Segments { experts, begins }) => {
                let count = b.graph.shape(experts).iter().product::<usize>();
                // With as many segments as rows, each has one.
                let grid = Grid { items: count * panels, grain: grain(count == batch * tokens) };
                let matmul = MatmulExperts { operands, experts, begins, out, n, k };
                b.module.call(&mut b.graph, isa, matmul, grid)
            }
            None => {
                let lengths = b.lengths(batch, tokens);
                let grid = Grid { items: panels, grain: grain(batch * tokens == 1) };
                let matmul = Matmul { operands, lengths, out, batch, tokens, n, k };
                b.module.call(&mut b.graph, isa, matmul, grid)
            }
        };
        results[0]
    }
}

/// Returns the outputs of a workgroup for a single row, in whole panels.
///
/// Kernels read four places of a workgroup's panels at once, and longer reads are faster. So a workgroup is as large as
/// possible while every core has some.
fn outputs_per_workgroup(outputs: usize) -> usize {
    let max = 4 * MAX_OUTPUTS;
    (outputs / MIN_WORKGROUPS / MAX_OUTPUTS * MAX_OUTPUTS).clamp(MAX_OUTPUTS, max)
}
