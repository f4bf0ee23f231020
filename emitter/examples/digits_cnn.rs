//! Prints a program that trains a small convolutional network on digits, with momentum.
//!
//! `init` makes parameters of a seed, `step` takes one step with a batch, `train` takes all steps in one loop, `evaluate` returns
//! loss and accuracy for the digits that are not learned, and `main` does everything.

#[path = "shared/mod.rs"]
mod shared;

use std::io::{self, Write};

use mlxcel_emitter::{Convolution, Error, Graph, Module, Reduction, Tensor, Window};
use safetensors::Dtype::{F32, I32, U64};

use shared::{
    Parameter, add_bias, arguments, batch, cross_entropy, digits, evaluate, held_out, initial, linear, named,
    relu,
};

const STEPS: usize = 500;
const LEARNING_RATE: f64 = 0.05;
const MOMENTUM: f64 = 0.9;

const PARAMETERS: [Parameter; 6] = [
    Parameter { name: "conv1.weight", shape: &[3, 3, 1, 8], deviation: 0.33 },
    Parameter { name: "conv1.bias", shape: &[8], deviation: 0.0 },
    Parameter { name: "conv2.weight", shape: &[3, 3, 8, 16], deviation: 0.17 },
    Parameter { name: "conv2.bias", shape: &[16], deviation: 0.0 },
    Parameter { name: "head.weight", shape: &[64, 10], deviation: 0.125 },
    Parameter { name: "head.bias", shape: &[10], deviation: 0.0 },
];

fn main() -> io::Result<()> {
    let text = module().map_err(io::Error::other)?;
    io::stdout().write_all(text.as_bytes())
}

/// Returns the program as MLIR text.
pub(crate) fn module() -> Result<String, Error> {
    let names: Vec<_> = ["", "velocity."]
        .iter()
        .flat_map(|prefix| PARAMETERS.iter().map(move |p| format!("{prefix}{}", p.name)))
        .collect();
    let mut module = Module::new("digits_cnn");

    let mut g = Graph::new();
    let seed = g.named_argument("seed", U64, &[2]);
    let parameters = initial(&mut g, seed, &PARAMETERS);
    module.add(g.finish_named("init", &named(&names, &parameters))?);

    let mut g = Graph::new();
    let old = ["", "velocity."].map(|prefix| arguments(&mut g, prefix, &PARAMETERS)).concat();
    let all = digits(&mut g);
    let index = g.named_argument("batch", I32, &[]);
    let [x, y] = batch(&mut g, all, index);
    let (new, loss) = step(&mut g, &old, x, y);
    let new: Vec<_> = old.iter().zip(new).map(|(&old, new)| g.replaces(old, new)).collect();
    module.add(g.finish_named("step", &[named(&names, &new), vec![("loss", loss)]].concat())?);

    let mut g = Graph::new();
    let seed = g.named_argument("seed", U64, &[2]);
    let all = digits(&mut g);
    let parameters = initial(&mut g, seed, &PARAMETERS);
    let trained = train(&mut g, parameters, all);
    module.add(g.finish_named("train", &named(&names, &trained))?);

    let mut g = Graph::new();
    let parameters = arguments(&mut g, "", &PARAMETERS);
    let all = digits(&mut g);
    let results = evaluate_held_out(&mut g, &parameters, all);
    module.add(g.finish_named("evaluate", &results)?);

    let mut g = Graph::new();
    let seed = g.named_argument("seed", U64, &[2]);
    let all = digits(&mut g);
    let parameters = initial(&mut g, seed, &PARAMETERS);
    let trained = train(&mut g, parameters, all);
    let results = evaluate_held_out(&mut g, &trained, all);
    module.add(g.finish_named("main", &results)?);

    module.to_mlir()
}

/// Returns the logits of ten classes.
fn forward(g: &mut Graph, parameters: &[Tensor], x: Tensor) -> Tensor {
    let examples = g.shape(x)[0];
    let x = g.reshape(x, &[examples, 8, 8, 1]);
    let x = convolve(g, x, parameters[0], parameters[1]);
    let x = convolve(g, x, parameters[2], parameters[3]);
    let x = g.reshape(x, &[examples, 64]);
    linear(g, x, parameters[4], parameters[5])
}

/// Returns the largest of each 2 × 2 results of a convolution that are positive.
fn convolve(g: &mut Graph, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor {
    let convolution = Convolution { padding: vec![(1, 1); 2], ..Convolution::channels_last(2) };
    let x = g.convolution(x, weight, &convolution);
    let x = add_bias(g, x, bias);
    let x = relu(g, x);
    g.reduce_window(x, Reduction::Max, &Window::tiles(&[1, 2, 2, 1]))
}

/// Returns the next parameters and velocities, and the loss.
fn step(g: &mut Graph, state: &[Tensor], x: Tensor, y: Tensor) -> (Vec<Tensor>, Tensor) {
    let (parameters, velocities) = state.split_at(PARAMETERS.len());
    let logits = forward(g, parameters, x);
    let loss = cross_entropy(g, logits, y);
    let gradients = g.gradient(loss, parameters);
    let velocities: Vec<_> = velocities
        .iter()
        .zip(gradients)
        .map(|(&velocity, gradient)| {
            let kept = g.scale(velocity, MOMENTUM);
            g.add(kept, gradient)
        })
        .collect();
    let moved = parameters.iter().zip(&velocities).map(|(&parameter, &velocity)| {
        let change = g.scale(velocity, LEARNING_RATE);
        g.subtract(parameter, change)
    });
    (moved.collect::<Vec<_>>().into_iter().chain(velocities.clone()).collect(), loss)
}

/// Returns the parameters after all steps.
fn train(g: &mut Graph, parameters: Vec<Tensor>, all: [Tensor; 2]) -> Vec<Tensor> {
    let zeros: Vec<_> = PARAMETERS.iter().map(|parameter| g.full(0.0, F32, parameter.shape)).collect();
    let last = g.repeat(STEPS, &[parameters, zeros].concat(), |g, index, state| {
        let [x, y] = batch(g, all, index);
        step(g, state, x, y).0
    });
    last[..PARAMETERS.len()].to_vec()
}

fn evaluate_held_out(g: &mut Graph, parameters: &[Tensor], all: [Tensor; 2]) -> [(&'static str, Tensor); 2] {
    let [x, y] = held_out(g, all);
    let logits = forward(g, parameters, x);
    evaluate(g, logits, y)
}
