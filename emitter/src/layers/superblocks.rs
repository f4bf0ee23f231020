//! Quantization of weights to superblocks, by kernels in the packing module.

use safetensors::Dtype;

use super::packing_kernels::PackingKernels;
use crate::{
    graph::{Graph, Tensor},
    group_form::{GROUP, GroupForm, SUPERBLOCK, Scales},
    kernels::{QuantizeHalves, QuantizeSuperblocks, WeightRows},
    types::TensorType,
};

/// Quantizes a weight, `[outputs, inputs]`, to the parts of a form with superblocks, see
/// [`decode_groups`](crate::decode::decode_groups).
pub(super) fn quantize(
    kernels: &mut PackingKernels,
    g: &mut Graph,
    weight: Tensor,
    form: GroupForm,
) -> Vec<Tensor> {
    let TensorType { dtype, shape } = g.type_of(weight);
    let (Some(x), &[outputs, k]) = (WeightRows::new(weight, dtype), shape.as_slice()) else {
        let problem = format!("found {dtype:?} of shape {shape:?}, expected a matrix of floats");
        return vec![g.fail("quantize", problem)];
    };
    // All inputs are as important.
    let importance = g.full(1.0, Dtype::F32, &[k]);
    let grid = PackingKernels::grid(outputs, k);
    let PartTypes { codes, unit, scales } = PartTypes::new(form, [outputs, k]);
    let parts = match form.scales {
        Scales::Superblocks => {
            let (least, minima, bits) = (unit.clone(), scales.clone(), form.bits);
            let kernel = QuantizeSuperblocks { x, importance, codes, unit, least, scales, minima, k, bits };
            kernels.call(g, kernel, grid)
        }
        Scales::Halves => kernels.call(g, QuantizeHalves { x, importance, codes, unit, scales, k }, grid),
        _ => return vec![not_superblocks(g, form)],
    };
    whole_numbers(g, parts)
}

/// The types of the parts that kernels make of a weight. Minima have those of scales and of their unit.
pub(super) struct PartTypes {
    pub(super) codes: TensorType,
    pub(super) unit: TensorType,
    pub(super) scales: TensorType,
}

impl PartTypes {
    /// Returns those of a weight of so many outputs and inputs in a form with superblocks.
    pub(super) fn new(form: GroupForm, [outputs, inputs]: [usize; 2]) -> Self {
        let of = |dtype, columns| TensorType::new(dtype, [outputs, columns]);
        let with_scales = if form.scales == Scales::Halves { GROUP / 2 } else { GROUP };
        Self {
            codes: of(Dtype::I8, inputs),
            unit: of(Dtype::F16, inputs.div_ceil(SUPERBLOCK)),
            scales: of(Dtype::I8, inputs / with_scales),
        }
    }
}

/// Widens bytes, as [`decode_groups`](crate::decode::decode_groups) gives them.
pub(super) fn whole_numbers(g: &mut Graph, parts: Vec<Tensor>) -> Vec<Tensor> {
    let whole = |part| if g.dtype(part) == Dtype::I8 { g.convert(part, Dtype::I32) } else { part };
    parts.into_iter().map(whole).collect()
}

/// Fails, because a form has no superblocks.
pub(super) fn not_superblocks(g: &mut Graph, form: GroupForm) -> Tensor {
    g.fail("quantize", format!("found {}, expected superblocks", form.name()))
}
