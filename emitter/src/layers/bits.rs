//! 16-bit floats from their bits, for targets that cannot load them. Exact, subnormal numbers included.

use safetensors::Dtype;

use crate::{Graph, Tensor};

/// bfloat16 bits (`i16`) as `f32`: they are its upper half.
pub(super) fn bf16(g: &mut Graph, bits: Tensor) -> Tensor {
    let wide = unsigned(g, bits);
    let shifted = shift_left(g, wide, 16);
    g.bitcast_convert(shifted, Dtype::F32)
}

/// IEEE half bits (`i16`) as `f32`. Exponent and mantissa, moved to where `f32` has them, read as the value times
/// 2⁻¹¹²; multiplying by 2¹¹² is exact and turns subnormal halves into normal numbers. Infinities and NaN, which no
/// weight is, come out as large numbers.
pub(super) fn f16(g: &mut Graph, bits: Tensor) -> Tensor {
    let shape = g.shape(bits).to_vec();
    let wide = unsigned(g, bits);
    let mask = |g: &mut Graph, mask: u32| g.full(f64::from(mask), Dtype::U32, &shape);
    let magnitude = mask(g, 0x7FFF);
    let magnitude = g.and(wide, magnitude);
    let magnitude = shift_left(g, magnitude, 13);
    let magnitude = g.bitcast_convert(magnitude, Dtype::F32);
    let scale = g.full(2f64.powi(112), Dtype::F32, &shape);
    let magnitude = g.multiply(magnitude, scale);
    let magnitude = g.bitcast_convert(magnitude, Dtype::U32);
    let sign = mask(g, 0x8000);
    let sign = g.and(wide, sign);
    let sign = shift_left(g, sign, 16);
    let both = g.or(sign, magnitude);
    g.bitcast_convert(both, Dtype::F32)
}

fn unsigned(g: &mut Graph, bits: Tensor) -> Tensor {
    let bits = g.bitcast_convert(bits, Dtype::U16);
    g.convert(bits, Dtype::U32)
}

fn shift_left(g: &mut Graph, x: Tensor, by: u32) -> Tensor {
    let shape = g.shape(x).to_vec();
    let by = g.full(f64::from(by), Dtype::U32, &shape);
    g.shift_left(x, by)
}
