//! Rounding by the moments of inputs: errors of earlier inputs are made up for by later ones.

use safetensors::Dtype;

use super::{
    packing_kernels::PackingKernels,
    superblocks::{PartTypes, not_superblocks, whole_numbers},
};
use crate::{
    graph::{Graph, Tensor},
    group_form::{GROUP, GroupForm, Scales},
    kernels::{CompensateHalves, CompensateSuperblocks, F32Bits, FactorMoments, FactoredWeights, Grid},
    types::TensorType,
};

/// What is added to the diagonal of moments, whose mean is 1 there.
///
/// From 0.001 to 0.1, a Llama of 2.6 M parameters differs by less than 2 % of its divergence (2026-11-25).
const DAMPING: f64 = 0.01;

/// Rows that a kernel rounds together.
const ROWS: usize = 16;

/// The factor of moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factored {
    /// `[inputs / 32, inputs, 32]`.
    pub(crate) factor: Tensor,
    /// `[inputs]`.
    pub(crate) pivots: Tensor,
}

/// Factors the sums of products of inputs, `[inputs, inputs]` of `f32`.
pub(crate) fn factor(kernels: &mut PackingKernels, g: &mut Graph, moments: Tensor) -> Factored {
    let k = g.shape(moments).first().copied().unwrap_or(0);
    let floats = |shape: &[usize]| TensorType::new(Dtype::F32, shape);
    let call = FactorMoments {
        moments,
        factor: floats(&[k / GROUP, k, GROUP]),
        pivots: floats(&[k]),
        scaled: floats(&[k, GROUP]),
        k,
        damping: F32Bits(DAMPING),
    };
    let results = kernels.call(g, call, Grid { items: 1, grain: 1 });
    Factored { factor: results[0], pivots: results[1] }
}

/// Rounds a weight, `[outputs, inputs]`, to the parts of a form, see [`decode_groups`](crate::decode::decode_groups).
pub(crate) fn compensate(
    kernels: &mut PackingKernels,
    g: &mut Graph,
    (w, by): (Tensor, Factored),
    form: GroupForm,
) -> Vec<Tensor> {
    let w = g.convert(w, Dtype::F32);
    let &[n, k] = g.shape(w) else { return vec![w] };
    let weights = FactoredWeights { w, factor: by.factor, pivots: by.pivots };
    let PartTypes { codes, unit, scales } = PartTypes::new(form, [n, k]);
    let errors = TensorType::new(Dtype::F32, [n.div_ceil(ROWS), k, ROWS]);
    let grid = Grid { items: n.div_ceil(ROWS), grain: 1 };
    let mut parts = match form.scales {
        Scales::Superblocks => {
            let (least, minima, bits) = (unit.clone(), scales.clone(), form.bits);
            let call =
                CompensateSuperblocks { weights, codes, unit, least, scales, minima, errors, n, k, bits };
            kernels.call(g, call, grid)
        }
        Scales::Halves => {
            kernels.call(g, CompensateHalves { weights, codes, unit, scales, errors, n, k }, grid)
        }
        _ => return vec![not_superblocks(g, form)],
    };
    // The errors are scratch memory.
    parts.pop();
    whole_numbers(g, parts)
}
