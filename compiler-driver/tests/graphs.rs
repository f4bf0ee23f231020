//! Programs that the emitter's examples print, compiled, loaded and run.

#[path = "../../emitter/examples/digits_cnn.rs"]
#[allow(dead_code, reason = "it has a main function")]
mod digits_cnn;
#[path = "../../emitter/examples/gradients/main.rs"]
#[allow(dead_code, reason = "it has a main function")]
mod gradients;
#[path = "../../emitter/examples/linear_regression.rs"]
#[allow(dead_code, reason = "it has a main function")]
mod linear_regression;
#[path = "../../emitter/examples/logistic_regression.rs"]
#[allow(dead_code, reason = "it has a main function")]
pub(crate) mod logistic_regression;
#[path = "../../emitter/examples/mlp_adam.rs"]
#[allow(dead_code, reason = "it has a main function")]
mod mlp_adam;
#[path = "../../emitter/examples/tutorial.rs"]
#[allow(dead_code, reason = "it has a main function")]
mod tutorial;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::Tensor;
use mlxcel_runtime::{DeviceOptions, Function, LoadedProgram, Program, Tolerance, compare};
use safetensors::Dtype;

use crate::programs_run::{built, tensors};

/// Compiles a program that an example printed, and loads it.
fn loaded<E: std::fmt::Display>(text: Result<String, E>) -> LoadedProgram {
    let text = text.map_err(|error| error.to_string()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.mlir");
    fs::write(&path, text).unwrap();
    let built = built(&path, |_| ()).unwrap();
    Program::new(built.bundle.clone()).unwrap().load(DeviceOptions::default()).unwrap()
}

/// Calls a function once.
fn called(program: &LoadedProgram, name: &str, inputs: &[(&str, &Tensor)]) -> Function {
    let mut function = program.function(name).unwrap();
    for (name, value) in inputs {
        function.set(name, value).unwrap();
    }
    function.call().unwrap();
    function
}

fn floats(function: &Function, name: &str) -> Vec<f32> {
    function.read(name).unwrap().numbers().unwrap()
}

fn float(function: &Function, name: &str) -> f32 {
    floats(function, name)[0]
}

fn seed() -> Tensor {
    Tensor::of(&[2], &[0_u64, 0]).unwrap()
}

/// The digits of scikit-learn, as `load_digits` has them.
fn digits() -> BTreeMap<String, Tensor> {
    tensors(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../emitter/examples/digits.npz"))
}

#[test]
fn the_tutorial_prints_what_mlx_prints() {
    let program = loaded(tutorial::module());
    let arrays = called(&program, "array_basics", &[]);
    assert_eq!(floats(&arrays, "z"), [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(floats(&arrays, "ones"), [1.0; 4]);
    let derivatives = called(&program, "automatic_differentiation", &[("x", &Tensor::scalar(1.5_f32))]);
    assert_eq!((float(&derivatives, "dfdx"), float(&derivatives, "d2fdx2")), (3.0, 2.0));
}

#[test]
fn linear_regression_finds_the_parameters() {
    let program = loaded(linear_regression::module());
    let main = called(&program, "main", &[("seed", &seed())]);
    // The noise has a deviation of 0.01, so that half its square is what 900 degrees of freedom of 1,000 leave: 4.5e-5.
    let (loss, error) = (float(&main, "loss"), float(&main, "error_norm"));
    assert!((4e-5..5e-5).contains(&loss), "{loss}");
    assert!(error < 5e-3, "{error}");

    // Steps from the host, with the parameters as a state, are those of the loop.
    let data = called(&program, "data", &[("seed", &seed())]);
    let inputs = ["w", "x", "y"].map(|name| (name, data.read(name).unwrap()));
    let inputs = [0, 1, 2].map(|index| (inputs[index].0, &inputs[index].1));
    let mut step = called(&program, "step", &inputs);
    (1..10_000).for_each(|_| step.call().unwrap());
    let train = called(&program, "train", &inputs);
    let difference =
        compare(&step.read("w").unwrap(), &train.read("w").unwrap(), Tolerance { rtol: 1e-5, atol: 1e-6 });
    assert!(difference.is_ok(), "{difference:?}");
}

#[test]
fn logistic_regression_classifies_all_examples() {
    let program = loaded(logistic_regression::module());
    let main = called(&program, "main", &[("seed", &seed())]);
    let (loss, accuracy) = (float(&main, "loss"), float(&main, "accuracy"));
    assert!(loss < 0.05 && accuracy == 1.0, "{loss} {accuracy}");
    // Random numbers have the moments of the standard normal distribution.
    let data = called(&program, "data", &[("seed", &seed())]);
    let x = floats(&data, "x");
    let mean = x.iter().sum::<f32>() / x.len() as f32;
    let square = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    assert!(mean.abs() < 0.01 && (square - 1.0).abs() < 0.02, "{mean} {square}");
}

#[test]
fn a_perceptron_learns_digits_with_adam() {
    let program = loaded(mlp_adam::module());
    let digits = digits();
    let init = called(&program, "init", &[("seed", &seed())]);
    let mut step = program.function("step").unwrap();
    for (name, _) in init.entry().outputs() {
        let parameter = init.read(&name).unwrap();
        let zeros = Tensor::new(Dtype::F32, parameter.shape(), vec![0; parameter.bytes().len()]).unwrap();
        step.set(&format!("m.{name}"), &zeros).unwrap();
        step.set(&format!("v.{name}"), &zeros).unwrap();
        step.set(&name, &parameter).unwrap();
    }
    step.set("count", &Tensor::scalar(0_i32)).unwrap();
    digits.iter().for_each(|(name, tensor)| step.set(name, tensor).unwrap());
    (0..1000).for_each(|_| step.call().unwrap());
    assert_eq!(step.read("count").unwrap().numbers::<i32>().unwrap(), [1000]);
    assert!(float(&step, "loss") < 0.1, "{}", float(&step, "loss"));

    let mut evaluate = program.function("evaluate").unwrap();
    for (name, _) in init.entry().outputs() {
        evaluate.set(&name, &step.read(&name).unwrap()).unwrap();
    }
    digits.iter().for_each(|(name, tensor)| evaluate.set(name, tensor).unwrap());
    evaluate.call().unwrap();
    assert!(float(&evaluate, "accuracy") > 0.88, "{}", float(&evaluate, "accuracy"));
}

#[test]
fn a_convolutional_network_learns_digits() {
    let program = loaded(digits_cnn::module());
    let digits = digits();
    let main = called(
        &program,
        "main",
        &[("seed", &seed()), ("images", &digits["images"]), ("labels", &digits["labels"])],
    );
    let (loss, accuracy) = (float(&main, "loss"), float(&main, "accuracy"));
    assert!(loss < 0.4 && accuracy > 0.9, "{loss} {accuracy}");
}

/// Returns numbers between -1.375 and 1.375 that are not zero. `oracle.py` has the same function.
fn numbers(count: usize, seed: usize) -> impl Iterator<Item = f32> {
    (0..count).map(move |i| (((i * 37 + seed * 11) % 23) as f32 - 11.0) / 8.0 + 1.0 / 16.0)
}

/// Returns the operand of a function that `oracle.py` gives it.
fn operand(dtype: Dtype, shape: &[usize], seed: usize) -> Tensor {
    let count = shape.iter().product();
    let real = numbers(count, seed);
    if dtype == Dtype::C64 {
        let parts =
            real.zip(numbers(count, seed + 5)).flat_map(|(re, im)| [re.to_le_bytes(), im.to_le_bytes()]);
        return Tensor::new(dtype, shape, parts.flatten().collect()).unwrap();
    }
    Tensor::of(shape, &real.collect::<Vec<_>>()).unwrap()
}

#[test]
fn gradients_are_those_of_jax() {
    let programs = gradients::GROUPS.map(|(_, cases)| loaded(gradients::module(cases)));
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gradients.txt");
    let expected = fs::read_to_string(expected).unwrap();
    let mut names = Vec::new();
    let mut wrong = Vec::new();
    for line in expected.lines() {
        let mut words = line.split(' ');
        let (name, index) = (words.next().unwrap(), words.next().unwrap());
        if names.last() != Some(&name) {
            names.push(name);
        }
        let expected: Vec<f32> = words.map(|word| word.parse().unwrap()).collect();
        let mut function = programs.iter().find_map(|program| program.function(name).ok()).unwrap();
        let entry = function.entry().clone();
        for (place, (argument, spec)) in entry.inputs().enumerate() {
            let seed = if argument == "d" { 7 } else { place };
            function.set(&argument, &operand(spec.dtype, &spec.shape, seed)).unwrap();
        }
        function.call().unwrap();
        let result = if index == "0" {
            "result".to_owned()
        } else {
            format!("g{}", index.parse::<usize>().unwrap() - 1)
        };
        let found = function.read(&result).unwrap();
        let found: Vec<f32> = found
            .bytes()
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 2e-6 + 2e-5 * b.abs();
        if found.len() != expected.len() || !found.iter().zip(&expected).all(close) {
            wrong.push(format!("{name} {result}: found {found:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count: usize = programs.iter().map(|program| program.functions().len()).sum();
    assert_eq!(names.len(), count, "each function has expected values");
}
