//! 16-bit floats from their bits, for targets that cannot load them: two neighbours in a 32-bit word, the first in its low
//! half, as they lie in memory. Exact, subnormal numbers included, also on devices that take those for zero in `f32`.

use safetensors::Dtype;

use crate::{Graph, Tensor};

/// The elements of `words` (`i32`), each word's first and each word's second, as `f32`; `dtype` says what they are.
pub(super) fn halves(g: &mut Graph, words: Tensor, dtype: Dtype) -> [Tensor; 2] {
    let words = g.bitcast_convert(words, Dtype::U32);
    let sixteen = like(g, words, 16);
    let low = g.shift_left(words, sixteen);
    let mask = like(g, words, 0xFFFF_0000);
    let high = g.and(words, mask);
    // bfloat16 is the upper half of f32.
    [low, high]
        .map(|upper| if dtype == Dtype::F16 { f16(g, upper) } else { g.bitcast_convert(upper, Dtype::F32) })
}

/// IEEE halves in the upper half of `u32` as `f32`. Infinities and NaN, which no weight is, come out as large numbers.
fn f16(g: &mut Graph, upper: Tensor) -> Tensor {
    let mask = like(g, upper, 0x7FFF_0000);
    let magnitude = g.and(upper, mask);
    // Exponent and mantissa go where f32 has them, and the exponent's bias grows from 15 to 127.
    let three = like(g, upper, 3);
    let normal = g.shift_right_logical(magnitude, three);
    let bias = like(g, upper, (127 - 15) << 23);
    let normal = g.add(normal, bias);
    // Without exponent bits it is the mantissa in units of 2⁻²⁴.
    let sixteen = like(g, upper, 16);
    let mantissa = g.shift_right_logical(magnitude, sixteen);
    let mantissa = g.convert(mantissa, Dtype::F32);
    let unit = g.scalar(2f64.powi(-24), Dtype::F32);
    let unit = g.broadcast_like(unit, upper);
    let subnormal = g.multiply(mantissa, unit);
    let subnormal = g.bitcast_convert(subnormal, Dtype::U32);
    let least = like(g, upper, 1 << 26);
    let without_exponent = g.lt(magnitude, least);
    let magnitude = g.select(without_exponent, subnormal, normal);
    let mask = like(g, upper, 0x8000_0000);
    let sign = g.and(upper, mask);
    let both = g.or(sign, magnitude);
    g.bitcast_convert(both, Dtype::F32)
}

/// `value` everywhere in the shape of `x`.
fn like(g: &mut Graph, x: Tensor, value: u32) -> Tensor {
    let shape = g.shape(x).to_vec();
    g.full(f64::from(value), Dtype::U32, &shape)
}
