//! Gradients of ops between real and complex numbers.
//!
//! As in JAX, the gradient of a complex tensor is not conjugated: that of a real function of `z = x + iy` is `df/dx - i df/dy`.

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::Fft,
    types::is_complex,
};

/// Adds the gradients of the operands of an op of complex numbers.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    let (x, z, d) = (step.operand(0), step.result(), step.gradient());
    match step.name() {
        "stablehlo.real" => step.send(g, 0, |g| {
            let zero = g.zeros_like(d);
            g.complex(d, zero)
        }),
        "stablehlo.imag" => step.send(g, 0, |g| {
            let (zero, negative) = (g.zeros_like(d), g.negate(d));
            g.complex(zero, negative)
        }),
        "stablehlo.complex" => {
            step.send(g, 0, |g| g.real(d));
            step.send(g, 1, |g| {
                let imaginary = g.imag(d);
                g.negate(imaginary)
            });
        }
        "stablehlo.abs" if is_complex(g.dtype(x)) => step.send(g, 0, |g| direction(g, x, z, d)),
        "stablehlo.fft" => return fft(g, step),
        _ => return false,
    }
    true
}

/// Returns `d` times the conjugate of `x` by its absolute value `z`, and zero where that is.
fn direction(g: &mut Graph, x: Tensor, z: Tensor, d: Tensor) -> Tensor {
    let zero = g.zeros_like(z);
    let one = g.full_like(z, 1);
    let is_zero = g.eq(z, zero);
    let divisor = g.select(is_zero, one, z);
    let ratio = g.divide(d, divisor);
    let (real, imaginary) = (g.real(x), g.imag(x));
    let (real, imaginary) = (g.multiply(ratio, real), g.multiply(ratio, imaginary));
    let imaginary = g.negate(imaginary);
    g.complex(real, imaginary)
}

fn fft(g: &mut Graph, step: &mut Step<'_>) -> bool {
    let Some(kind) = Fft::read(step.attribute("fft_type")) else { return false };
    let lengths = step.integers("fft_length");
    let (x, d) = (step.operand(0), step.gradient());
    step.send(g, 0, |g| match kind {
        Fft::Forward | Fft::Inverse => g.fft(d, kind, &lengths),
        Fft::RealForward => of_real_forward(g, x, d, &lengths),
        Fft::RealInverse => of_real_inverse(g, d, &lengths),
    });
    true
}

/// Returns the real part of the transform of `d`, whose missing half is zero.
fn of_real_forward(g: &mut Graph, x: Tensor, d: Tensor, lengths: &[usize]) -> Tensor {
    let (full, half) = (g.shape(x).to_vec(), g.shape(d).to_vec());
    let high: Vec<_> = full.iter().zip(&half).map(|(full, half)| full - half).collect();
    let none = vec![0; full.len()];
    // The parts are padded one by one, because iree-compile 3.13 crashes on padded complex numbers.
    let [real, imaginary] = [g.real(d), g.imag(d)].map(|part| {
        let zero = g.scalar(0.0, g.dtype(part));
        g.pad(part, zero, &none, &high, &none)
    });
    let padded = g.complex(real, imaginary);
    let transform = g.fft(padded, Fft::Forward, lengths);
    g.real(transform)
}

/// Returns the conjugate of the transform of `d`. Each number of the half that stands for two counts twice.
fn of_real_inverse(g: &mut Graph, d: Tensor, lengths: &[usize]) -> Tensor {
    let transform = g.fft(d, Fft::RealForward, lengths);
    let parts = [g.real(transform), g.imag(transform)];
    let half = g.shape(transform).to_vec();
    let last = half.len() - 1;
    let length = lengths.last().copied().unwrap_or(1);
    #[expect(clippy::cast_precision_loss, reason = "lengths are below 2^52")]
    let scale = 1.0 / lengths.iter().product::<usize>() as f64;
    let dtype = g.dtype(parts[0]);
    let once = g.full(scale, dtype, &half);
    let twice = g.full(2.0 * scale, dtype, &half);
    let index = g.iota(safetensors::Dtype::I32, &half, last);
    let [first, middle] = [0, length / 2].map(|place| g.full_like(index, place));
    let mut is_single = g.eq(index, first);
    if length.is_multiple_of(2) {
        let is_middle = g.eq(index, middle);
        is_single = g.or(is_single, is_middle);
    }
    let weight = g.select(is_single, once, twice);
    let [real, imaginary] = parts.map(|part| g.multiply(part, weight));
    let imaginary = g.negate(imaginary);
    g.complex(real, imaginary)
}
