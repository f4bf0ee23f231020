//! Precision of results: sums of narrow floats, and rounding to fewer bits.

use safetensors::Dtype;

use super::{
    super::{ast::Op, attributes::integer, replay::Replay},
    dilation,
};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
    ops::Convolution,
    types::TensorType,
};

/// Returns what stands for a product or convolution: for 16-bit floats one with sums in `f32`, then rounded.
///
/// iree-compile would round after each addition, and is wrong about what a kernel with one place does not reach.
pub(super) fn sums(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Tensor>, Error> {
    let Some(ty) = replay.result_types(op, operands, &[])?.pop() else { return Ok(None) };
    let mut attributes = op.attributes.clone();
    // Which units compute it, and how precise they are at least. iree-compile takes no advice.
    attributes.remove("algorithm");
    let mut operands = operands.to_vec();
    let convolution = (op.name == "stablehlo.convolution")
        .then(|| Convolution::read(|name| op.attribute(name).unwrap_or_default()))
        .flatten();
    let shapes: Vec<_> = operands.iter().map(|operand| replay.graph.shape(*operand)).collect();
    let padding = match (&convolution, shapes.as_slice()) {
        (Some(convolution), [x, kernel]) => convolution.padding_in_reach(x, kernel),
        _ => None,
    };
    if let Some(padding) = &padding {
        attributes.insert("padding", padding);
    }
    if let Some(convolution) = &convolution {
        let mut steps = vec![1; replay.graph.shape(operands[0]).len()];
        let spatial = convolution.dimensions.input_spatial.iter().zip(&convolution.input_dilation);
        spatial.for_each(|(&dimension, &step)| steps[dimension] = step);
        operands[0] = dilation::with_zeros(&mut replay.graph, operands[0], &steps);
        attributes.remove("lhs_dilation");
    }
    let is_narrow = matches!(ty.dtype, Dtype::BF16 | Dtype::F16);
    let dtype = if is_narrow { Dtype::F32 } else { ty.dtype };
    let sums =
        replay.add(op.name, &operands, &attributes, Vec::new(), vec![TensorType::new(dtype, ty.shape)]);
    Ok(sums.first().map(|sums| if is_narrow { replay.graph.convert(*sums, ty.dtype) } else { *sums }))
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
