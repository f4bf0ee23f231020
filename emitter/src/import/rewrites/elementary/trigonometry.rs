//! Sine, cosine and tangent.
//!
//! For CPUs, iree-compile has none in `f64`. In `f32` its sine of a million is wrong by more than one, that of 1e12 by 1e11.

use safetensors::Dtype;

use super::{turns::Turns, value::Value};
use crate::graph::Graph;

/// Coefficients of (sin(x) / x - 1) / x², and of (cos(x) - 1 + x² / 2) / x⁴, by powers of x², for |x| up to π/4.
struct Coefficients {
    sine: &'static [f64],
    cosine: &'static [f64],
}

const F64: Coefficients = Coefficients {
    sine: &[
        -0.166_666_666_666_666_66,
        0.008_333_333_333_333_331,
        -0.000_198_412_698_412_648_21,
        2.755_731_921_915_078_3e-6,
        -2.505_210_616_733_570_5e-8,
        1.605_852_134_995_498_4e-10,
        -7.586_094_789_672_523e-13,
    ],
    cosine: &[
        0.041_666_666_666_666_664,
        -0.001_388_888_888_888_888_7,
        2.480_158_730_158_451e-5,
        -2.755_731_922_129_809e-7,
        2.087_675_575_487_959_4e-9,
        -1.147_045_517_821_690_4e-11,
        4.745_537_017_319_204e-14,
    ],
};

const F32: Coefficients = Coefficients {
    sine: &[-0.166_666_667, 0.008_333_331_83, -0.000_198_400_63, 2.724_686_87e-6],
    cosine: &[0.041_666_666_7, -0.001_388_888_76, 2.480_058_06e-5, -2.729_840_77e-7],
};

pub(super) fn sine<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let (sine, cosine, quarter) = both(x);
    let is_odd = quarter.with_number(Graph::and, 1.0).is(1.0);
    let is_below = quarter.with_number(Graph::and, 2.0).is(2.0);
    let result = is_odd.select(cosine, sine);
    let result = is_below.select(-result, result);
    finite(x, result.with_sign_of(x))
}

pub(super) fn cosine<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let (sine, cosine, quarter) = both(x);
    let is_odd = quarter.with_number(Graph::and, 1.0).is(1.0);
    let is_below = (quarter + 1.0).with_number(Graph::and, 2.0).is(2.0);
    let result = is_odd.select(sine, cosine);
    finite(x, is_below.select(-result, result))
}

pub(super) fn tangent<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let (sine, cosine, quarter) = both(x);
    let is_odd = quarter.with_number(Graph::and, 1.0).is(1.0);
    let result = is_odd.select(-cosine, sine) / is_odd.select(sine, cosine);
    finite(x, result.with_sign_of(x))
}

/// Returns sine and cosine of what is left of |x| once multiples of π/2 are taken away, and their number.
fn both<'m, 'g>(x: Value<'m, 'g>) -> (Value<'m, 'g>, Value<'m, 'g>, Value<'m, 'g>) {
    let Turns { quarter, high, low } = Turns::new(x.abs());
    let coefficients = if x.dtype() == Dtype::F64 { F64 } else { F32 };
    let square = high * high;
    let half = square * 0.5;
    let whole = -half + 1.0;
    let sine = high + (square * high * square.polynomial(coefficients.sine) + low * whole);
    let rest = square * square * square.polynomial(coefficients.cosine) - high * low;
    let cosine = whole + ((-whole + 1.0 - half) + rest);
    (sine, cosine, quarter)
}

/// Returns a result, or NaN where there is none because a number is not finite.
fn finite<'m, 'g>(x: Value<'m, 'g>, result: Value<'m, 'g>) -> Value<'m, 'g> {
    x.apply(Graph::is_finite).select(result, x.number(f64::NAN))
}
