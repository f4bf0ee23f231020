//! Prints a program that trains a multilayer perceptron on digits with Adam.
//!
//! `init` makes parameters of a seed, `step` takes one step with the next batch, and `evaluate` returns loss and accuracy for
//! the digits that are not learned. Parameters, moments and the number of steps are a state that each step replaces.

#[path = "shared/mod.rs"]
mod shared;

use std::io::{self, Write};

use mlxcel_emitter::{Error, Graph, Module, Tensor};
use safetensors::Dtype::{F32, I32, U64};

use shared::{
    Parameter, arguments, batch, cross_entropy, digits, evaluate, held_out, initial, linear, named, relu,
};

const LEARNING_RATE: f64 = 1e-3;
const DECAY: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

const PARAMETERS: [Parameter; 4] = [
    Parameter { name: "hidden.weight", shape: &[64, 128], deviation: 0.125 },
    Parameter { name: "hidden.bias", shape: &[128], deviation: 0.0 },
    Parameter { name: "head.weight", shape: &[128, 10], deviation: 0.09 },
    Parameter { name: "head.bias", shape: &[10], deviation: 0.0 },
];

fn main() -> io::Result<()> {
    let text = module().map_err(io::Error::other)?;
    io::stdout().write_all(text.as_bytes())
}

/// Returns the program as MLIR text.
pub(crate) fn module() -> Result<String, Error> {
    let names: Vec<_> = ["", "m.", "v."]
        .iter()
        .flat_map(|prefix| PARAMETERS.iter().map(move |p| format!("{prefix}{}", p.name)))
        .collect();
    let mut module = Module::new("mlp_adam");

    let mut g = Graph::new();
    let seed = g.named_argument("seed", U64, &[2]);
    let parameters = initial(&mut g, seed, &PARAMETERS);
    module.add(g.finish_named("init", &named(&names, &parameters))?);

    let mut g = Graph::new();
    let [parameters, first, second] = ["", "m.", "v."].map(|prefix| arguments(&mut g, prefix, &PARAMETERS));
    let count = g.named_argument("count", I32, &[]);
    let all = digits(&mut g);
    let [x, y] = batch(&mut g, all, count);
    let logits = forward(&mut g, &parameters, x);
    let loss = cross_entropy(&mut g, logits, y);
    let gradients = g.gradient(loss, &parameters);
    let one = g.scalar(1.0, I32);
    let next_count = g.add(count, one);
    let steps = g.convert(next_count, F32);
    let mut state = [Vec::new(), Vec::new(), Vec::new()];
    for index in 0..PARAMETERS.len() {
        let old = [parameters[index], first[index], second[index]];
        let new = adam(&mut g, old, gradients[index], steps);
        for ((all, old), new) in state.iter_mut().zip(old).zip(new) {
            all.push(g.replaces(old, new));
        }
    }
    let next_count = g.replaces(count, next_count);
    let state = state.concat();
    let results = [named(&names, &state), vec![("count", next_count), ("loss", loss)]].concat();
    module.add(g.finish_named("step", &results)?);

    let mut g = Graph::new();
    let parameters = arguments(&mut g, "", &PARAMETERS);
    let all = digits(&mut g);
    let [x, y] = held_out(&mut g, all);
    let logits = forward(&mut g, &parameters, x);
    let results = evaluate(&mut g, logits, y);
    module.add(g.finish_named("evaluate", &results)?);

    module.to_mlir()
}

/// Returns the logits of ten classes.
fn forward(g: &mut Graph, parameters: &[Tensor], x: Tensor) -> Tensor {
    let hidden = linear(g, x, parameters[0], parameters[1]);
    let hidden = relu(g, hidden);
    linear(g, hidden, parameters[2], parameters[3])
}

/// Returns the next parameter and its moments.
fn adam(
    g: &mut Graph,
    [parameter, first, second]: [Tensor; 3],
    gradient: Tensor,
    count: Tensor,
) -> [Tensor; 3] {
    let square = g.multiply(gradient, gradient);
    let moments = [(first, gradient, DECAY[0]), (second, square, DECAY[1])].map(|(moment, new, decay)| {
        let (old, new) = (g.scale(moment, decay), g.scale(new, 1.0 - decay));
        g.add(old, new)
    });
    let unbiased = [0, 1].map(|index| {
        let base = g.scalar(DECAY[index], F32);
        let power = g.power(base, count);
        let one = g.scalar(1.0, F32);
        let correction = g.subtract(one, power);
        let correction = g.broadcast_like(correction, moments[index]);
        g.divide(moments[index], correction)
    });
    let deviation = g.sqrt(unbiased[1]);
    let epsilon = g.scalar(EPSILON, F32);
    let epsilon = g.broadcast_like(epsilon, deviation);
    let divisor = g.add(deviation, epsilon);
    let change = g.divide(unbiased[0], divisor);
    let change = g.scale(change, LEARNING_RATE);
    [g.subtract(parameter, change), moments[0], moments[1]]
}
