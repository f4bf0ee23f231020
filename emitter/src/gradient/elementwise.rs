//! Gradients of elementwise ops.

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    types::is_complex,
};

/// Ops whose results do not change where they have a derivative.
const STEPS: &[&str] = &[
    "stablehlo.ceil",
    "stablehlo.floor",
    "stablehlo.round_nearest_afz",
    "stablehlo.round_nearest_even",
    "stablehlo.sign",
];

/// Adds the gradients of the operands of an elementwise op.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    let name = step.name();
    if STEPS.contains(&name) {
        return true;
    }
    let (x, z, d) = (step.operand(0), step.result(), step.gradient());
    match name {
        "stablehlo.negate" => step.send(g, 0, |g| g.negate(d)),
        "stablehlo.abs" if !is_complex(g.dtype(x)) => step.send(g, 0, |g| {
            // The slope at zero is 1, as in JAX.
            let (zero, negative) = (g.zeros_like(x), g.negate(d));
            let is_positive = g.ge(x, zero);
            g.select(is_positive, d, negative)
        }),
        // Integers change in steps.
        "stablehlo.convert" if !g.is_differentiable(z) => {}
        "stablehlo.convert" => step.send(g, 0, |g| {
            let dtype = g.dtype(x);
            g.convert(d, dtype)
        }),
        "stablehlo.reduce_precision" => {
            let attributes = step.op.attributes.clone();
            let ty = g.type_of(x);
            let name = step.op.name.clone();
            step.send(g, 0, |g| g.raw(name, &[d], attributes, vec![], vec![ty.into()])[0]);
        }
        "util.optimization_barrier" | "stablehlo.optimization_barrier" => step.send_unchanged(g),
        "stablehlo.log" => step.send(g, 0, |g| g.divide(d, x)),
        "stablehlo.log_plus_one" => step.send(g, 0, |g| {
            let sum = offset(g, 1.0, x);
            g.divide(d, sum)
        }),
        "stablehlo.divide" => divide(g, step),
        "stablehlo.select" => select(g, step),
        "stablehlo.clamp" => clamp(g, step),
        _ if step.op.operands.len() == 2 => return binary(g, step),
        _ if step.op.operands.len() == 1 && !step.wants(0) => return false,
        _ => {
            let Some(derivative) = derivative(g, name, x, z) else { return false };
            step.send(g, 0, |g| g.multiply(d, derivative));
        }
    }
    true
}

/// Returns the derivative of `z`, which is a unary op of `x`.
fn derivative(g: &mut Graph, op: &str, x: Tensor, z: Tensor) -> Option<Tensor> {
    Some(match op {
        "stablehlo.cbrt" => {
            let square = g.multiply(z, z);
            quotient(g, 1.0 / 3.0, square)
        }
        "stablehlo.cosine" => {
            let sine = g.sine(x);
            g.negate(sine)
        }
        "chlo.erf" => {
            let gauss = exponential_of_square(g, x, -1.0);
            g.scale(gauss, std::f64::consts::FRAC_2_SQRT_PI)
        }
        "chlo.erf_inv" => {
            let inverse = exponential_of_square(g, z, 1.0);
            g.scale(inverse, 1.0 / std::f64::consts::FRAC_2_SQRT_PI)
        }
        "stablehlo.exponential" => z,
        "stablehlo.exponential_minus_one" => offset(g, 1.0, z),
        "stablehlo.logistic" => {
            let rest = minus(g, 1.0, z);
            g.multiply(z, rest)
        }
        "stablehlo.rsqrt" => {
            let ratio = g.divide(z, x);
            g.scale(ratio, -0.5)
        }
        "stablehlo.sine" => g.cosine(x),
        "stablehlo.sqrt" => quotient(g, 0.5, z),
        "stablehlo.tan" => {
            let square = g.multiply(z, z);
            offset(g, 1.0, square)
        }
        "stablehlo.tanh" => {
            let square = g.multiply(z, z);
            minus(g, 1.0, square)
        }
        _ => return None,
    })
}

/// Adds the gradients of both operands of a binary op.
fn binary(g: &mut Graph, step: &mut Step<'_>) -> bool {
    let (x, y, z, d) = (step.operand(0), step.operand(1), step.result(), step.gradient());
    match step.name() {
        "stablehlo.add" => {
            step.send(g, 0, |_| d);
            step.send(g, 1, |_| d);
        }
        "stablehlo.subtract" => {
            step.send(g, 0, |_| d);
            step.send(g, 1, |g| g.negate(d));
        }
        "stablehlo.multiply" => {
            step.send(g, 0, |g| g.multiply(d, y));
            step.send(g, 1, |g| g.multiply(d, x));
        }
        "stablehlo.maximum" | "stablehlo.minimum" => {
            step.send(g, 0, |g| chosen(g, d, x, y, z));
            step.send(g, 1, |g| chosen(g, d, y, x, z));
        }
        "stablehlo.atan2" => {
            let squares = [x, y].map(|part| g.multiply(part, part));
            let norm = g.add(squares[0], squares[1]);
            // Near the origin a gradient by the norm would overflow before it is multiplied.
            step.send(g, 0, |g| {
                let slope = g.divide(y, norm);
                g.multiply(d, slope)
            });
            step.send(g, 1, |g| {
                let slope = g.divide(x, norm);
                let product = g.multiply(d, slope);
                g.negate(product)
            });
        }
        "stablehlo.power" => {
            step.send(g, 0, |g| power_of_base(g, d, x, y));
            step.send(g, 1, |g| {
                let base = nonzero(g, x);
                let log = g.log(base);
                let slope = g.multiply(log, z);
                g.multiply(d, slope)
            });
        }
        "stablehlo.remainder" => {
            step.send(g, 0, |_| d);
            step.send(g, 1, |g| {
                let multiple = g.subtract(x, z);
                let multiple = g.divide(multiple, y);
                let multiple = g.round_nearest_even(multiple);
                let product = g.multiply(d, multiple);
                g.negate(product)
            });
        }
        _ => return false,
    }
    true
}

fn divide(g: &mut Graph, step: &mut Step<'_>) {
    let (y, z, d) = (step.operand(1), step.result(), step.gradient());
    let ratio = g.divide(d, y);
    step.send(g, 0, |_| ratio);
    step.send(g, 1, |g| {
        let product = g.multiply(ratio, z);
        g.negate(product)
    });
}

/// Returns `d` where `x` is the extremum `z` of `x` and `y`, and half of it where both are.
fn chosen(g: &mut Graph, d: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor {
    let (is_chosen, is_tie) = (g.eq(x, z), g.eq(x, y));
    let half = g.scale(d, 0.5);
    let part = g.select(is_tie, half, d);
    let zero = g.zeros_like(d);
    g.select(is_chosen, part, zero)
}

/// Returns `d · y · x^(y - 1)`, and zero where `y` is zero.
fn power_of_base(g: &mut Graph, d: Tensor, x: Tensor, y: Tensor) -> Tensor {
    let zero = g.zeros_like(y);
    let is_constant = g.eq(y, zero);
    let less = offset(g, -1.0, y);
    let power = g.power(x, less);
    let slope = g.multiply(y, power);
    let slope = g.select(is_constant, zero, slope);
    g.multiply(d, slope)
}

fn select(g: &mut Graph, step: &mut Step<'_>) {
    let (condition, d) = (step.operand(0), step.gradient());
    let zero = g.zeros_like(d);
    step.send(g, 1, |g| g.select(condition, d, zero));
    step.send(g, 2, |g| g.select(condition, zero, d));
}

fn clamp(g: &mut Graph, step: &mut Step<'_>) {
    let (x, d) = (step.operand(1), step.gradient());
    let zero = g.zeros_like(d);
    let [low, high] = [0, 2].map(|index| {
        let bound = step.operand(index);
        if g.shape(bound).is_empty() { g.broadcast_like(bound, x) } else { bound }
    });
    step.send(g, 1, |g| {
        let (is_above, is_below) = (g.gt(x, low), g.lt(x, high));
        let is_inside = g.and(is_above, is_below);
        g.select(is_inside, d, zero)
    });
    let shapes = [0, 2].map(|index| g.shape(step.operand(index)).to_vec());
    step.send(g, 0, |g| {
        // A lower bound that is not below the upper one is never the result.
        let (is_below, is_range) = (g.lt(x, low), g.lt(low, high));
        let is_result = g.and(is_below, is_range);
        let gradient = g.select(is_result, d, zero);
        g.sum_to(gradient, &shapes[0])
    });
    step.send(g, 2, |g| {
        let is_result = g.gt(x, high);
        let gradient = g.select(is_result, d, zero);
        g.sum_to(gradient, &shapes[1])
    });
}

/// Returns `x`, or 1 where it is zero.
fn nonzero(g: &mut Graph, x: Tensor) -> Tensor {
    let zero = g.zeros_like(x);
    let one = g.full_like(x, 1);
    let is_zero = g.eq(x, zero);
    g.select(is_zero, one, x)
}

/// Returns `exp(factor · x²)`.
fn exponential_of_square(g: &mut Graph, x: Tensor, factor: f64) -> Tensor {
    let square = g.multiply(x, x);
    let scaled = g.scale(square, factor);
    g.exponential(scaled)
}

/// Returns `number / x`.
fn quotient(g: &mut Graph, number: f64, x: Tensor) -> Tensor {
    let ty = g.type_of(x);
    let number = g.full(number, ty.dtype, &ty.shape);
    g.divide(number, x)
}

/// Returns `number - x`.
fn minus(g: &mut Graph, number: f64, x: Tensor) -> Tensor {
    let ty = g.type_of(x);
    let number = g.full(number, ty.dtype, &ty.shape);
    g.subtract(number, x)
}

/// Returns `number + x`.
fn offset(g: &mut Graph, number: f64, x: Tensor) -> Tensor {
    let ty = g.type_of(x);
    let number = g.full(number, ty.dtype, &ty.shape);
    g.add(number, x)
}
