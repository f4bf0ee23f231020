//! Elementwise ops.

use mlxcel_emitter::{Graph, Tensor};
use safetensors::Dtype;

use super::Case;

/// Returns the square of the first operand, which is positive.
fn square(g: &mut Graph, x: &[Tensor]) -> Tensor {
    g.multiply(x[0], x[0])
}

/// Makes a case of a unary op.
macro_rules! unary {
    ($name:literal, $method:ident) => {
        Case { name: $name, shapes: &[&[2, 5]], body: |g, x| g.$method(x[0]) }
    };
}

/// Makes a case of a unary op of positive numbers.
macro_rules! of_square {
    ($name:literal, $method:ident) => {
        Case {
            name: $name,
            shapes: &[&[2, 5]],
            body: |g, x| {
                let square = square(g, x);
                g.$method(square)
            },
        }
    };
}

/// Makes a case of a binary op.
macro_rules! binary {
    ($name:literal, $method:ident) => {
        Case { name: $name, shapes: &[&[2, 5], &[2, 5]], body: |g, x| g.$method(x[0], x[1]) }
    };
}

pub(crate) const CASES: &[Case] = &[
    unary!("abs", abs),
    of_square!("cbrt", cbrt),
    unary!("ceil", ceil),
    unary!("cosine", cosine),
    unary!("erf", erf),
    unary!("exponential", exponential),
    unary!("exponential_minus_one", exponential_minus_one),
    unary!("floor", floor),
    of_square!("log", log),
    of_square!("log_plus_one", log_plus_one),
    unary!("logistic", logistic),
    unary!("negate", negate),
    unary!("round_nearest_even", round_nearest_even),
    of_square!("rsqrt", rsqrt),
    unary!("sign", sign),
    unary!("sine", sine),
    of_square!("sqrt", sqrt),
    unary!("tan", tan),
    unary!("tanh", tanh),
    binary!("add", add),
    binary!("atan2", atan2),
    binary!("divide", divide),
    binary!("maximum", maximum),
    binary!("minimum", minimum),
    binary!("multiply", multiply),
    binary!("remainder", remainder),
    binary!("subtract", subtract),
    Case {
        name: "erf_inv",
        shapes: &[&[2, 5]],
        body: |g, x| {
            let inside = g.scale(x[0], 0.5);
            g.erf_inv(inside)
        },
    },
    Case { name: "maximum_of_equals", shapes: &[&[2, 5]], body: |g, x| g.maximum(x[0], x[0]) },
    Case {
        name: "power",
        shapes: &[&[2, 5], &[2, 5]],
        body: |g, x| {
            let base = square(g, x);
            g.power(base, x[1])
        },
    },
    Case {
        name: "power_of_zero",
        shapes: &[&[2, 5]],
        body: |g, x| {
            let two = g.full(2.0, Dtype::F32, &[2, 5]);
            let zero = g.full(0.0, Dtype::F32, &[2, 5]);
            let (cut, square) = (g.maximum(x[0], zero), g.maximum(x[0], zero));
            let square = g.power(square, two);
            g.multiply(cut, square)
        },
    },
    Case {
        name: "select",
        shapes: &[&[2, 5], &[2, 5]],
        body: |g, x| {
            let condition = g.lt(x[0], x[1]);
            g.select(condition, x[0], x[1])
        },
    },
    Case {
        name: "clamp",
        shapes: &[&[], &[2, 5], &[2, 5]],
        body: |g, x| {
            let half = g.full(0.5, Dtype::F32, &[2, 5]);
            let high = g.add(x[2], half);
            g.clamp(x[0], x[1], high)
        },
    },
    Case {
        name: "clamp_to_swapped_bounds",
        shapes: &[&[2, 5], &[2, 5], &[2, 5]],
        body: |g, x| g.clamp(x[0], x[1], x[2]),
    },
    Case {
        name: "abs_of_zero",
        shapes: &[&[2, 5]],
        body: |g, x| {
            let constant = g.stop_gradient(x[0]);
            let zero = g.subtract(x[0], constant);
            g.abs(zero)
        },
    },
    Case {
        name: "atan2_near_zero",
        shapes: &[&[2, 5], &[2, 5]],
        body: |g, x| {
            let [y, x] = [x[0], x[1]].map(|part| g.scale(part, 1e-16));
            let angle = g.atan2(y, x);
            g.scale(angle, 1e10)
        },
    },
    Case {
        name: "convert",
        shapes: &[&[2, 5]],
        body: |g, x| {
            let half = g.convert(x[0], Dtype::BF16);
            let float = g.convert(half, Dtype::F32);
            g.multiply(float, float)
        },
    },
    Case {
        name: "stop_gradient",
        shapes: &[&[2, 5]],
        body: |g, x| {
            let constant = g.stop_gradient(x[0]);
            g.multiply(constant, x[0])
        },
    },
    Case {
        name: "second_derivative",
        shapes: &[&[2, 5]],
        body: |g, x| {
            let (tanh, sine) = (g.tanh(x[0]), g.sine(x[0]));
            let product = g.multiply(tanh, sine);
            let one = g.full(1.0, Dtype::F32, &[2, 5]);
            g.vjp(&[product], &[one], x)[0]
        },
    },
    Case { name: "complex_multiply", shapes: &[&[2, 3], &[2, 3]], body: |g, x| g.multiply(x[0], x[1]) },
    Case { name: "complex_divide", shapes: &[&[2, 3], &[2, 3]], body: |g, x| g.divide(x[0], x[1]) },
    Case { name: "complex_exponential", shapes: &[&[2, 3]], body: |g, x| g.exponential(x[0]) },
    Case { name: "complex_abs", shapes: &[&[2, 3]], body: |g, x| g.abs(x[0]) },
    Case {
        name: "complex_stop_gradient",
        shapes: &[&[2, 3]],
        body: |g, x| {
            let constant = g.stop_gradient(x[0]);
            g.multiply(constant, x[0])
        },
    },
    Case {
        name: "complex_parts",
        shapes: &[&[2, 3]],
        body: |g, x| {
            let (real, imaginary) = (g.real(x[0]), g.imag(x[0]));
            let product = g.multiply(real, imaginary);
            g.complex(product, real)
        },
    },
];
