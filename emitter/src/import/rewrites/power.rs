//! Powers of floats.
//!
//! iree-compile computes them by logarithms, so that those of negative numbers are NaN unless the exponent is a constant.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    types::is_float,
};

/// Returns `x` to the power of `y`, which follows C's `pow` for zeros, infinities and NaN.
pub(super) fn rewrite(graph: &mut Graph, x: Tensor, y: Tensor) -> Option<Tensor> {
    let ty = graph.type_of(x);
    if !is_float(ty.dtype) {
        return None;
    }
    let bits = match ty.dtype {
        Dtype::F16 | Dtype::BF16 => Dtype::I16,
        Dtype::F32 => Dtype::I32,
        Dtype::F64 => Dtype::I64,
        _ => return None,
    };
    let full = |graph: &mut Graph, value: f64| graph.full(value, ty.dtype, &ty.shape);
    let (zero, one, half) = (full(graph, 0.0), full(graph, 1.0), full(graph, 0.5));
    let not_a_number = full(graph, f64::NAN);
    let size = graph.abs(x);
    let power = graph.power(size, y);
    // To an infinite power too.
    let is_unit = graph.eq(size, one);
    let power = graph.select(is_unit, one, power);

    let rounded = graph.floor(y);
    let is_whole = graph.eq(rounded, y);
    let halved = graph.multiply(y, half);
    let halved_down = graph.floor(halved);
    let has_half = graph.ne(halved, halved_down);
    let is_odd = graph.and(is_whole, has_half);
    // Of −0 and −∞ too.
    let sign = graph.bitcast_convert(x, bits);
    let no_bits = graph.full(0.0, bits, &ty.shape);
    let is_negative = graph.lt(sign, no_bits);

    let flips = graph.and(is_negative, is_odd);
    let negated = graph.negate(power);
    let signed = graph.select(flips, negated, power);
    // A fraction of a number below zero is none, but of −∞.
    let is_below = graph.lt(x, zero);
    let is_finite = graph.is_finite(x);
    let is_fraction = graph.not(is_whole);
    let no_root = graph.and(is_below, is_finite);
    let no_root = graph.and(no_root, is_fraction);
    let signed = graph.select(no_root, not_a_number, signed);
    // 1 to any power, and anything to the power of 0, are 1, NaN included.
    let (is_one, is_zeroth) = (graph.eq(x, one), graph.eq(y, zero));
    let is_unit = graph.or(is_one, is_zeroth);
    Some(graph.select(is_unit, one, signed))
}
