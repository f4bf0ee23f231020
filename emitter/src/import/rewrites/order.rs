//! Comparisons that iree-compile takes for those of plain numbers.

use safetensors::Dtype;

use super::super::{ast::Op, attributes::word};
use crate::{
    graph::{Graph, Tensor},
    types::TensorType,
};

/// Returns what stands for a comparison in the total order of IEEE 754: −NaN, −∞, …, −0, 0, …, ∞, NaN.
///
/// It is the order of the bits as integers, once those of negative numbers are inverted.
pub(super) fn compare(graph: &mut Graph, op: &Op<'_>, x: Tensor, y: Tensor) -> Option<Tensor> {
    if op.attribute("compare_type").and_then(word) != Some("TOTALORDER") {
        return None;
    }
    let (x, y) = (key(graph, x)?, key(graph, y)?);
    Some(match word(op.attribute("comparison_direction")?)? {
        "EQ" => graph.eq(x, y),
        "NE" => graph.ne(x, y),
        "LT" => graph.lt(x, y),
        "LE" => graph.le(x, y),
        "GT" => graph.gt(x, y),
        "GE" => graph.ge(x, y),
        _ => return None,
    })
}

/// Returns integers in the total order of floats; `None` if elements are none.
pub(super) fn key(graph: &mut Graph, x: Tensor) -> Option<Tensor> {
    let ty = graph.type_of(x);
    let dtype = match ty.dtype {
        Dtype::F16 | Dtype::BF16 => Dtype::I16,
        Dtype::F32 => Dtype::I32,
        Dtype::F64 => Dtype::I64,
        _ => return None,
    };
    let bits = graph.bitcast_convert(x, dtype);
    let zero = graph.full(0.0, dtype, &ty.shape);
    let not = graph.not(bits);
    // A full number saturates: it is the lowest integer, the sign alone. All other bits are inverted.
    let sign = graph.full(f64::NEG_INFINITY, dtype, &ty.shape);
    let inverted = graph.xor(not, sign);
    let is_negative = graph.lt(bits, zero);
    Some(graph.select(is_negative, inverted, bits))
}

/// Returns what stands for the larger or smaller of complex numbers, which are compared by their real parts, and by their
/// imaginary parts if those are equal.
pub(super) fn extreme(graph: &mut Graph, op: &Op<'_>, x: Tensor, y: Tensor) -> Option<Tensor> {
    let ty = TensorType::new(Dtype::F32, graph.shape(x));
    let [x_real, y_real] = [x, y].map(|value| graph.op("stablehlo.real", &[value], vec![], ty.clone()));
    let [x_imag, y_imag] = [x, y].map(|value| graph.op("stablehlo.imag", &[value], vec![], ty.clone()));
    let (real, imag) = match op.name {
        "stablehlo.maximum" => (graph.gt(x_real, y_real), graph.gt(x_imag, y_imag)),
        "stablehlo.minimum" => (graph.lt(x_real, y_real), graph.lt(x_imag, y_imag)),
        _ => return None,
    };
    let is_same = graph.eq(x_real, y_real);
    let second = graph.and(is_same, imag);
    let is_first = graph.or(real, second);
    Some(graph.select(is_first, x, y))
}
