//! Prints a program of the first steps: arrays, and derivatives of functions.
//!
//! `array_basics` returns `[[2, 3], [4, 5]]` and `[[1, 1], [1, 1]]`. `automatic_differentiation` returns the derivatives of
//! `x²`: at 1.5 they are 3 and 2.

use std::io::{self, Write};

use mlxcel_emitter::{Error, Graph, Module};
use safetensors::Dtype;

fn main() -> io::Result<()> {
    let text = module().map_err(io::Error::other)?;
    io::stdout().write_all(text.as_bytes())
}

/// Returns the program as MLIR text.
pub(crate) fn module() -> Result<String, Error> {
    let mut module = Module::new("tutorial");

    let mut g = Graph::new();
    // A tensor has its elements in row-major order, so the first row is [1, 2].
    let x = g.constant_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    let ones = g.full(1.0, Dtype::F32, &[2, 2]);
    // Nothing is computed here: `z` has a shape and a type, and stands for a value in the program.
    let z = g.add(x, ones);
    module.add(g.finish_named("array_basics", &[("z", z), ("ones", ones)])?);

    let mut g = Graph::new();
    let x = g.named_argument("x", Dtype::F32, &[]);
    let square = g.multiply(x, x);
    let first = g.gradient(square, &[x])[0];
    // A gradient is made of ops, so that it has a gradient.
    let second = g.gradient(first, &[x])[0];
    module.add(g.finish_named("automatic_differentiation", &[("dfdx", first), ("d2fdx2", second)])?);

    module.to_mlir()
}
