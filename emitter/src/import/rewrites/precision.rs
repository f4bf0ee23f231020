//! Precision of results: sums of narrow floats, and rounding to fewer bits.

use safetensors::Dtype;

use super::super::{ast::Op, attributes::integer, replay::Replay};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
    types::TensorType,
};

/// Returns what stands for a product or convolution of 16-bit floats: one with sums in `f32`, then rounded.
///
/// iree-compile would round after each addition.
pub(super) fn sums(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Tensor>, Error> {
    let Some(ty) = replay.result_types(op, operands, &[])?.pop() else { return Ok(None) };
    if !matches!(ty.dtype, Dtype::BF16 | Dtype::F16) {
        return Ok(None);
    }
    let wide = TensorType::new(Dtype::F32, ty.shape);
    let sums = replay.add(op.name, operands, &op.attributes, Vec::new(), vec![wide]);
    Ok(sums.first().map(|sums| replay.graph.convert(*sums, ty.dtype)))
}

/// Returns what stands for rounding to no bit after the first: NaN has none left, and becomes infinite.
pub(super) fn reduced(graph: &mut Graph, op: &Op<'_>, x: Tensor) -> Option<Tensor> {
    let bits = |name| op.attribute(name).and_then(integer).and_then(|bits| u32::try_from(bits).ok());
    let (exponent, 0) = (bits("exponent_bits")?, bits("mantissa_bits")?) else { return None };
    let ty = graph.type_of(x);
    let rounded = graph.reduce_precision(x, exponent, 0);
    let is_none = graph.ne(x, x);
    let infinity = graph.full(f64::INFINITY, ty.dtype, &ty.shape);
    Some(graph.select(is_none, infinity, rounded))
}
