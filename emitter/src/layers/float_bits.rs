//! 16-bit floats from their bits, for targets that cannot load them.
//!
//! A 32-bit word holds two neighbors as they are in memory, the first in its low half. The conversion is exact, subnormal
//! numbers included, also on devices that flush subnormal `f32` numbers to zero.

use safetensors::Dtype;

use crate::graph::{Graph, Tensor};

/// Returns the low and the high elements of `words`, which are `i32`, as `f32`. `dtype` is the elements' type.
pub(super) fn widen(g: &mut Graph, words: Tensor, dtype: Dtype) -> [Tensor; 2] {
    let words = g.bitcast_convert(words, Dtype::U32);
    let sixteen = full_like(g, words, 16);
    let low = g.shift_left(words, sixteen);
    let mask = full_like(g, words, 0xFFFF_0000);
    let high = g.and(words, mask);
    // A bf16 is the upper half of an f32.
    [low, high]
        .map(|upper| if dtype == Dtype::F16 { f16(g, upper) } else { g.bitcast_convert(upper, Dtype::F32) })
}

/// Converts f16 in the upper half of `u32` to `f32`. Infinities and NaN, which weights do not contain, become large numbers.
fn f16(g: &mut Graph, upper: Tensor) -> Tensor {
    let mask = full_like(g, upper, 0x7FFF_0000);
    let magnitude = g.and(upper, mask);
    // Shift exponent and mantissa to their places in an f32, and change the exponent's bias from 15 to 127.
    let three = full_like(g, upper, 3);
    let normal = g.shift_right_logical(magnitude, three);
    let bias = full_like(g, upper, (127 - 15) << 23);
    let normal = g.add(normal, bias);
    // A subnormal number is its mantissa in units of 2⁻²⁴.
    let sixteen = full_like(g, upper, 16);
    let mantissa = g.shift_right_logical(magnitude, sixteen);
    let mantissa = g.convert(mantissa, Dtype::F32);
    let unit = g.scalar(2f64.powi(-24), Dtype::F32);
    let unit = g.broadcast_like(unit, upper);
    let subnormal = g.multiply(mantissa, unit);
    let subnormal = g.bitcast_convert(subnormal, Dtype::U32);
    let least = full_like(g, upper, 1 << 26);
    let without_exponent = g.lt(magnitude, least);
    let magnitude = g.select(without_exponent, subnormal, normal);
    let mask = full_like(g, upper, 0x8000_0000);
    let sign = g.and(upper, mask);
    let both = g.or(sign, magnitude);
    g.bitcast_convert(both, Dtype::F32)
}

/// Returns `value` in the shape of `x`.
fn full_like(g: &mut Graph, x: Tensor, value: u32) -> Tensor {
    let shape = g.shape(x).to_vec();
    g.full(f64::from(value), Dtype::U32, &shape)
}
