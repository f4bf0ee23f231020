//! Prints a program that fits a linear function to noisy examples by gradient descent.
//!
//! `data` makes examples of a seed, `step` takes one step, `train` all of them, and `main` does everything and returns the loss and the
//! distance from the parameters that made the examples.

use std::io::{self, Write};

use mlxcel_emitter::{Error, Graph, Module, Reduction, Tensor};
use safetensors::Dtype::{F32, U64};

const FEATURES: usize = 100;
const EXAMPLES: usize = 1_000;
const ITERATIONS: usize = 10_000;
const LEARNING_RATE: f64 = 0.01;

fn main() -> io::Result<()> {
    let text = module().map_err(io::Error::other)?;
    io::stdout().write_all(text.as_bytes())
}

/// The examples, the parameters that made them, and those to begin with.
struct Data {
    x: Tensor,
    y: Tensor,
    truth: Tensor,
    w: Tensor,
}

/// Returns the program as MLIR text.
pub(crate) fn module() -> Result<String, Error> {
    let mut module = Module::new("linear_regression");

    let mut g = Graph::new();
    let Data { x, y, truth, w } = data(&mut g);
    module.add(g.finish_named("data", &[("x", x), ("y", y), ("w_star", truth), ("w", w)])?);

    for (name, iterations) in [("step", 1), ("train", ITERATIONS)] {
        let mut g = Graph::new();
        let w = g.named_argument("w", F32, &[FEATURES]);
        let x = g.named_argument("x", F32, &[EXAMPLES, FEATURES]);
        let y = g.named_argument("y", F32, &[EXAMPLES]);
        let next = if iterations == 1 { step(&mut g, x, y, w) } else { train(&mut g, x, y, w) };
        let next = g.replaces(w, next);
        module.add(g.finish_named(name, &[("w", next)])?);
    }

    let mut g = Graph::new();
    let Data { x, y, truth, w } = data(&mut g);
    let w = train(&mut g, x, y, w);
    let loss = loss(&mut g, x, y, w);
    let error = g.subtract(w, truth);
    let error = g.multiply(error, error);
    let error = g.reduce(error, Reduction::Sum, &[0]);
    let error = g.sqrt(error);
    module.add(g.finish_named("main", &[("loss", loss), ("error_norm", error)])?);

    module.to_mlir()
}

fn data(g: &mut Graph) -> Data {
    let seed = g.named_argument("seed", U64, &[2]);
    let (state, truth) = g.normal(seed, &[FEATURES]);
    let (state, x) = g.normal(state, &[EXAMPLES, FEATURES]);
    let (state, noise) = g.normal(state, &[EXAMPLES]);
    let (_, w) = g.normal(state, &[FEATURES]);
    let (noise, w) = (g.scale(noise, 1e-2), g.scale(w, 1e-2));
    let y = g.matmul(x, truth);
    let y = g.add(y, noise);
    Data { x, y, truth, w }
}

/// Returns half the mean of the squared errors.
fn loss(g: &mut Graph, x: Tensor, y: Tensor, w: Tensor) -> Tensor {
    let predicted = g.matmul(x, w);
    let error = g.subtract(predicted, y);
    let square = g.multiply(error, error);
    let sum = g.reduce(square, Reduction::Sum, &[0]);
    g.scale(sum, 0.5 / EXAMPLES as f64)
}

/// Returns the next parameters.
fn step(g: &mut Graph, x: Tensor, y: Tensor, w: Tensor) -> Tensor {
    let loss = loss(g, x, y, w);
    let gradient = g.gradient(loss, &[w])[0];
    let change = g.scale(gradient, LEARNING_RATE);
    g.subtract(w, change)
}

/// Returns the parameters after all steps.
fn train(g: &mut Graph, x: Tensor, y: Tensor, w: Tensor) -> Tensor {
    g.repeat(ITERATIONS, &[w], |g, _, state| vec![step(g, x, y, state[0])])[0]
}
