//! Prints a program that classifies examples by logistic regression.
//!
//! `data` makes examples of a seed, `step` takes one step, `train` all of them, and `main` does everything and returns the loss and the
//! accuracy.

use std::io::{self, Write};

use mlxcel_emitter::{Error, Graph, Module, Reduction, Tensor};
use safetensors::Dtype::{F32, U64};

const FEATURES: usize = 100;
const EXAMPLES: usize = 1_000;
const ITERATIONS: usize = 10_000;
const LEARNING_RATE: f64 = 0.1;

fn main() -> io::Result<()> {
    let text = module().map_err(io::Error::other)?;
    io::stdout().write_all(text.as_bytes())
}

/// Returns the program as MLIR text.
pub(crate) fn module() -> Result<String, Error> {
    let mut module = Module::new("logistic_regression");

    let mut g = Graph::new();
    let (x, y, w) = data(&mut g);
    module.add(g.finish_named("data", &[("x", x), ("y", y), ("w", w)])?);

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
    let w = g.named_argument("w", F32, &[FEATURES]);
    let x = g.named_argument("x", F32, &[EXAMPLES, FEATURES]);
    let y = g.named_argument("y", F32, &[EXAMPLES]);
    let results = evaluate(&mut g, x, y, w);
    module.add(g.finish_named("evaluate", &results)?);

    let mut g = Graph::new();
    let (x, y, w) = data(&mut g);
    let w = train(&mut g, x, y, w);
    let results = evaluate(&mut g, x, y, w);
    module.add(g.finish_named("main", &results)?);

    module.to_mlir()
}

/// Returns examples, their labels, and parameters to begin with.
fn data(g: &mut Graph) -> (Tensor, Tensor, Tensor) {
    let seed = g.named_argument("seed", U64, &[2]);
    let (state, truth) = g.normal(seed, &[FEATURES]);
    let (state, x) = g.normal(state, &[EXAMPLES, FEATURES]);
    let (_, w) = g.normal(state, &[FEATURES]);
    let logits = g.matmul(x, truth);
    let y = is_positive(g, logits);
    (x, y, g.scale(w, 1e-2))
}

/// Returns 1 where `x` is positive, and 0 elsewhere.
fn is_positive(g: &mut Graph, x: Tensor) -> Tensor {
    let zero = g.full(0.0, F32, &[EXAMPLES]);
    let positive = g.gt(x, zero);
    g.convert(positive, F32)
}

/// Returns the mean of `log(1 + exp(logits)) - y · logits`.
fn loss(g: &mut Graph, x: Tensor, y: Tensor, w: Tensor) -> Tensor {
    let logits = g.matmul(x, w);
    // Written so that the exponential does not overflow.
    let magnitude = g.abs(logits);
    let negative = g.negate(magnitude);
    let exponential = g.exponential(negative);
    let log = g.log_plus_one(exponential);
    let zero = g.full(0.0, F32, &[EXAMPLES]);
    let positive = g.maximum(logits, zero);
    let softplus = g.add(positive, log);
    let label = g.multiply(y, logits);
    let each = g.subtract(softplus, label);
    let sum = g.reduce(each, Reduction::Sum, &[0]);
    g.scale(sum, 1.0 / EXAMPLES as f64)
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

/// Returns the loss, and the fraction of examples that are classified right.
fn evaluate(g: &mut Graph, x: Tensor, y: Tensor, w: Tensor) -> [(&'static str, Tensor); 2] {
    let loss = loss(g, x, y, w);
    let logits = g.matmul(x, w);
    let predicted = is_positive(g, logits);
    let right = g.eq(predicted, y);
    let right = g.convert(right, F32);
    let count = g.reduce(right, Reduction::Sum, &[0]);
    let accuracy = g.scale(count, 1.0 / EXAMPLES as f64);
    [("loss", loss), ("accuracy", accuracy)]
}
