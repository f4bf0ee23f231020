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
        "util.optimization_barrier" | "stablehlo.optimization_barrier" => {
            for (index, gradient) in step.gradients.clone().into_iter().enumerate() {
                let Some(gradient) = gradient else { continue };
                step.send(g, index, |_| gradient);
            }
        }
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
        "stablehlo.abs" if !is_complex(g.dtype(x)) => g.sign(x),
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
        "stablehlo.log" => quotient(g, 1.0, x),
        "stablehlo.log_plus_one" => {
            let sum = offset(g, 1.0, x);
            quotient(g, 1.0, sum)
        }
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
            let scaled = g.divide(d, norm);
            step.send(g, 0, |g| g.multiply(scaled, y));
            step.send(g, 1, |g| {
                let product = g.multiply(scaled, x);
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
    let bounds = [0, 2].map(|index| {
        let bound = step.operand(index);
        if g.shape(bound).is_empty() { g.broadcast_like(bound, x) } else { bound }
    });
    step.send(g, 1, |g| {
        let (above, below) = (g.gt(x, bounds[0]), g.lt(x, bounds[1]));
        let inside = g.and(above, below);
        g.select(inside, d, zero)
    });
    for (index, bound) in [(0, bounds[0]), (2, bounds[1])] {
        let shape = g.shape(step.operand(index)).to_vec();
        step.send(g, index, |g| {
            let outside = if index == 0 { g.lt(x, bound) } else { g.gt(x, bound) };
            let gradient = g.select(outside, d, zero);
            g.sum_to(gradient, &shape)
        });
    }
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
