//! Functions that follow from the exponential function and the logarithm.

use safetensors::Dtype;

use super::value::Value;

/// Returns `exp(x) - 1`.
///
/// What `exp(x)` lost by rounding is in its logarithm too, by which it is divided. In `f64`, iree-compile subtracts alone.
pub(super) fn exp_minus_one<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let power = x.exp();
    let difference = power - 1.0;
    let exact = difference * x / power.log();
    let near = x.abs().below(0.7).select(exact, difference);
    power.is(1.0).select(x, near)
}

/// Returns `log(1 + x)`, which iree-compile has with the precision of `f32` alone.
pub(super) fn log_plus_one<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let sum = x + 1.0;
    let log = sum.log();
    let near = x.above(1e17).select(log, log * x / (sum - 1.0));
    sum.is(1.0).select(x, near)
}

/// Returns the hyperbolic tangent.
pub(super) fn tanh<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    // Further out it is 1.
    let size = x.abs();
    let size = size.above(30.0).select(x.number(30.0), size);
    let power = exp_minus_one(size + size);
    (power / (power + 2.0)).with_sign_of(x)
}

/// Returns the hyperbolic sine.
pub(super) fn sinh<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let (half, is_far) = halved(x);
    let power = if x.dtype() == Dtype::F64 {
        exp_minus_one(half)
    } else {
        half.apply(crate::graph::Graph::exponential_minus_one)
    };
    let near = (power + power / (power + 1.0)) * 0.5;
    is_far.select(power * 0.5 * power, near).with_sign_of(x)
}

/// Returns the hyperbolic cosine.
pub(super) fn cosh<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let (half, is_far) = halved(x);
    let power = half.exp();
    let near = power * 0.5 + x.number(0.5) / power;
    is_far.select(power * 0.5 * power, near)
}

/// Returns |x|, or half of it where its exponential is near the largest number, and whether that is so.
fn halved<'m, 'g>(x: Value<'m, 'g>) -> (Value<'m, 'g>, Value<'m, 'g>) {
    let is_far = x.abs().above(80.0);
    (is_far.select(x.abs() * 0.5, x.abs()), is_far)
}

/// Returns the inverse of the hyperbolic sine.
pub(super) fn asinh<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let size = x.abs();
    let is_far = size.above(1e9);
    let near = is_far.select(x.number(1.0), size);
    let square = near * near;
    let near = log_plus_one(near + square / ((square + 1.0).sqrt() + 1.0));
    is_far.select(size.log() + std::f64::consts::LN_2, near).with_sign_of(x)
}

/// Returns the inverse of the hyperbolic tangent.
pub(super) fn atanh<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let size = x.abs();
    (log_plus_one((size + size) / (-size + 1.0)) * 0.5).with_sign_of(x)
}

/// Returns the cube root: an estimate by logarithms, and a step of Newton's method.
pub(super) fn cbrt<'m, 'g>(x: Value<'m, 'g>) -> Value<'m, 'g> {
    let size = x.abs();
    let estimate = (size.log() / 3.0).exp();
    let root = estimate - (estimate - size / (estimate * estimate)) / 3.0;
    let has_no_other = size.is(0.0).or(size.is(f64::INFINITY));
    has_no_other.select(x, root.with_sign_of(x))
}
