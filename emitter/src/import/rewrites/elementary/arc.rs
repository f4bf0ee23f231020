//! Arc tangent, and the functions that follow from it.
//!
//! For CPUs, iree-compile has none in `f64`, and in `f32` one that is wrong at infinities and by up to 40 units in the last
//! place elsewhere.

use safetensors::Dtype;

use super::value::Value;
use crate::graph::Graph;

/// Coefficients of (atan(x) / x - 1) / x², by powers of x², for |x| up to tan(π/8).
const F64: [f64; 14] = [
    -0.333_333_333_333_333_3,
    0.2,
    -0.142_857_142_857_141_32,
    0.111_111_111_110_882_93,
    -0.090_909_090_891_399_26,
    0.076_923_076_099_631_49,
    -0.066_666_641_767_812_76,
    0.058_823_016_484_446_544,
    -0.052_624_176_447_708_344,
    0.047_543_190_098_480_79,
    -0.042_925_742_114_057_246,
    0.037_173_180_489_832_99,
    -0.027_146_491_884_243_57,
    0.011_840_668_649_721_53,
];

const F32: [f64; 7] = [
    -0.333_333_333,
    0.199_999_989,
    -0.142_856_078,
    0.111_073_654,
    -0.090_273_784_1,
    0.071_262_587_7,
    -0.040_241_665_2,
];

/// π/4 in two parts. Four times the first one is exact.
const EIGHTH: [[f64; 2]; 2] = [
    [0.785_398_163_397_447_4, 9.187_945_896_788_09e-16],
    [0.785_397_529_602_050_8, 6.337_953_975_283_657e-7],
];

/// tan(π/8)
const LIMIT: f64 = 0.414_213_562_373_095_03;

/// Returns the angle of the point with these coordinates.
pub(super) fn atan2<'m, 'g>(y: Value<'m, 'g>, x: Value<'m, 'g>) -> Value<'m, 'g> {
    let is_double = x.dtype() == Dtype::F64;
    let ([first, second], coefficients) =
        if is_double { (EIGHTH[0], F64.as_slice()) } else { (EIGHTH[1], F32.as_slice()) };
    let is_steep = y.abs().with_value(Graph::gt, x.abs());
    let largest = is_steep.select(y.abs(), x.abs());
    let smallest = is_steep.select(x.abs(), y.abs());
    // Infinities count as ones, beside which all other numbers are zero. Sums of the largest numbers would be infinite.
    let (huge, tiny) = if is_double { (1e300, 1e-290) } else { (1e37, 1e-30) };
    let scale = largest.above(huge).select(x.number(0.0625), x.number(1.0));
    let scale = largest.below(tiny).select(x.number(if is_double { 1e100 } else { 1e20 }), scale);
    let is_infinite = |value: Value<'m, 'g>| value.is(f64::INFINITY);
    let (a, b) = (smallest * scale, largest * scale);
    let one = x.number(1.0);
    let beside = is_infinite(smallest).select(one, x.number(0.0));
    let (a, b) = (is_infinite(largest).select(beside, a), is_infinite(largest).select(one, b));
    let b = b.is(0.0).select(one, b);
    // Between π/8 and π/4 it is the angle to the diagonal.
    let is_near = a.with_value(Graph::gt, b * LIMIT);
    let ratio = is_near.select(a - b, a) / is_near.select(a + b, b);
    let square = ratio * ratio;
    let angle = ratio + ratio * square * square.polynomial(coefficients);
    let eighths = is_near.select(one, x.number(0.0));
    let (eighths, angle) = (is_steep.select(-eighths + 2.0, eighths), is_steep.select(-angle, angle));
    let is_left = x.has_sign();
    let (eighths, angle) = (is_left.select(-eighths + 4.0, eighths), is_left.select(-angle, angle));
    let sum = eighths * first + (eighths * second + angle);
    let result = eighths.is(0.0).select(angle, sum).with_sign_of(y);
    let is_number = x.equals(x).and(y.equals(y));
    is_number.select(result, x.number(f64::NAN))
}

pub(super) fn atan<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    atan2(x, x.number(1.0))
}

pub(super) fn asin<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    atan2(x, other_side(x))
}

pub(super) fn acos<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    atan2(other_side(x), x)
}

/// Returns the other side of the triangle with hypotenuse 1.
fn other_side<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    ((-x + 1.0) * (x + 1.0)).sqrt()
}
