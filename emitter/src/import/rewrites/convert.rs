//! Conversions of integers to floats of 16 bits, for which CPUs have no instruction, and of complex numbers to themselves.

use safetensors::Dtype;

use super::super::{ast::Op, attributes::tensor_type, replay::Replay};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
    types::{TensorType, is_float},
};

/// Returns what stands for a conversion to `to`: one to `f32`, and from there.
pub(super) fn rewrite(graph: &mut Graph, x: Tensor, to: Option<TensorType>) -> Option<Tensor> {
    let to = to?.dtype;
    let from = graph.dtype(x);
    let is_narrow = matches!(to, Dtype::BF16 | Dtype::F16);
    if !is_narrow || is_float(from) || from == Dtype::C64 {
        return None;
    }
    let wide = graph.convert(x, Dtype::F32);
    let bits = if to == Dtype::BF16 { (8, 7) } else { (5, 10) };
    // Rounded by itself, because the compiler would join the two conversions.
    let rounded = graph.reduce_precision(wide, bits.0, bits.1);
    Some(graph.convert(rounded, to))
}

/// Returns complex numbers as they are, if their bits are taken for complex numbers. Otherwise iree-compile crashes.
pub(super) fn same(replay: &Replay<'_, '_>, op: &Op<'_>, x: Tensor) -> Result<Option<Tensor>, Error> {
    let ty = op.result_types.first().and_then(|ty| tensor_type(ty));
    if ty.is_some_and(|ty| ty.dtype == Dtype::C64) {
        return Ok(Some(x));
    }
    let problem =
        "found complex numbers whose bits are taken for others, expected their real and imaginary parts";
    Err(replay.refused(op, problem, "take stablehlo.real and stablehlo.imag before"))
}
