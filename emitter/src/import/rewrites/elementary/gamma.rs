//! The logarithm of the gamma function and its derivative, by Lanczos' approximation.
//!
//! That of iree-compile needs functions that it has not for CPUs in `f64`.

use std::f64::consts::PI;

use super::{
    exponential::log_plus_one,
    trigonometry::{cosine, sine},
    value::Value,
};
use crate::graph::Graph;

/// Where Lanczos' approximation is anchored.
const G: f64 = 7.0;

/// Its coefficients.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// The logarithm of the square root of 2π.
const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_7;

/// Returns the logarithm of the absolute value of the gamma function.
pub(super) fn lgamma<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let is_low = x.below(0.5);
    let z = is_low.select(-x, x - 1.0);
    let (log, shifted) = shifted(z);
    let (series, _) = series(z);
    let above = (z + 0.5 - shifted / log) * log + LOG_SQRT_TAU + series.log();
    // For small numbers the function at 1 - x is known, and a sine.
    let size = x.abs();
    let fraction = size - size.apply(Graph::floor);
    let fraction = fraction.above(0.5).select(-fraction + 1.0, fraction);
    let below = -sine(fraction * PI).abs().log() - above + PI.ln();
    let result = is_low.select(below, above);
    size.is(f64::INFINITY).select(size, result)
}

/// Returns the derivative of the logarithm of the gamma function.
pub(super) fn digamma<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let is_low = x.below(0.5);
    let z = is_low.select(-x, x - 1.0);
    let (log, shifted) = shifted(z);
    let (series, derivative) = series(z);
    let above = log + derivative / series - z.number(G) / shifted;
    let turns = (x - (x + 0.5).apply(Graph::floor)) * PI;
    let below = above - cosine(turns) * PI / sine(turns);
    let result = is_low.select(below, above);
    let is_pole = x.below(0.5).and(x.equals(x.apply(Graph::floor)));
    is_pole.select(x.number(f64::NAN), result)
}

/// Returns the logarithm of `z + 7.5`, and that.
fn shifted<'m, 'g>(z: Value<'m, 'g>) -> (Value<'m, 'g>, Value<'m, 'g>) {
    let shift = G + 0.5;
    (log_plus_one(z / shift) + shift.ln(), z + shift)
}

/// Returns Lanczos' series and its derivative.
fn series<'m, 'g>(z: Value<'m, 'g>) -> (Value<'m, 'g>, Value<'m, 'g>) {
    let [first, rest @ ..] = LANCZOS;
    let (mut sum, mut derivative) = (z.number(first), z.number(0.0));
    let mut shifted = z;
    for coefficient in rest {
        shifted = shifted + 1.0;
        let term = z.number(coefficient) / shifted;
        sum = sum + term;
        derivative = derivative - term / shifted;
    }
    (sum, derivative)
}
