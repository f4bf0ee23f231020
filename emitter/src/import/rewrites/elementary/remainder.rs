//! The remainder of `f64` numbers, exact as the specification asks.
//!
//! Mantissas are integers. The dividend's is moved by ten bits at a time, up to the exponent of the divisor's, and divided. For
//! CPUs, iree-compile has no such op.

use super::value::{Math, Value};
use crate::{
    graph::{Graph, Tensor},
    ops::Reduction,
};

/// The bits of a mantissa that are not its first one.
const MANTISSA: u32 = 52;

/// The bits that a mantissa is moved by at a time.
const STEP: f64 = 10.0;

pub(super) fn remainder(g: &mut Graph, x: Tensor, y: Tensor) -> Tensor {
    let (first, divisor, distance) = {
        let math = Math::new(g);
        let (x, y) = (math.value(x).abs().bits(), math.value(y).abs().bits());
        let distance = x.shift_right(MANTISSA) - y.shift_right(MANTISSA);
        let first = mantissa(x).with_value(Graph::remainder, mantissa(y));
        (first.tensor(), mantissa(y).tensor(), distance.tensor())
    };
    let found = g.while_loop(
        &[first, distance],
        |g, state| {
            let zero = g.full_like(state[1], 0);
            let is_left = g.gt(state[1], zero);
            let dimensions: Vec<_> = (0..g.shape(is_left).len()).collect();
            g.reduce(is_left, Reduction::Or, &dimensions)
        },
        |g, state| {
            let math = Math::new(g);
            let (rest, distance) = (math.value(state[0]), math.value(state[1]));
            let step = distance.with_number(Graph::minimum, STEP).with_number(Graph::maximum, 0.0);
            let rest =
                rest.with_value(Graph::shift_left, step).with_value(Graph::remainder, math.value(divisor));
            vec![rest.tensor(), (distance - step).tensor()]
        },
    );
    let math = Math::new(g);
    let (x, y, rest) = (math.value(x), math.value(y), math.value(found[0]));
    let unit = y.abs().bits().shift_right(MANTISSA).shift_left(MANTISSA).float_of_bits();
    let result = rest.float() * f64::from(2).powi(-(MANTISSA as i32)) * unit;
    let is_less = x.abs().with_value(Graph::lt, y.abs());
    let result = is_less.select(x, result.with_sign_of(x));
    let has_none =
        x.abs().is(f64::INFINITY).or(y.is(0.0)).or(y.with_value(Graph::ne, y)).or(x.with_value(Graph::ne, x));
    has_none.select(x.number(f64::NAN), result).tensor()
}

/// Returns the integer of a number's bits.
fn mantissa<'m, 'g>(bits: Value<'m, 'g>) -> Value<'m, 'g> {
    let one = f64::from(2).powi(MANTISSA as i32);
    bits.with_number(Graph::and, one - 1.0).with_number(Graph::or, one)
}
