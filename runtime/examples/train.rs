//! Calls a program's function many times, each time with the state that the call before returned:
//! `cargo run --release -p mlxcel-runtime --example train -- step.bundle inputs.npz 1000`

use std::{
    env,
    error::Error,
    io::{self, Write as _},
    path::Path,
};

use mlxcel_artifacts::TensorFile;
use mlxcel_runtime::{DeviceOptions, Function, Program};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [bundle, inputs, steps] = &arguments[..] else {
        return Err("usage: train BUNDLE INPUTS.npz STEPS".into());
    };
    let step = train(Path::new(bundle), Path::new(inputs), steps.parse()?)?;
    for (name, _) in step.entry().outputs() {
        let tensor = step.read(&name)?;
        let first = tensor.elements().next().map_or(String::new(), |element| format!(", first {element}"));
        writeln!(io::stdout(), "{name}: {tensor}{first}")?;
    }
    Ok(())
}

/// Returns the function after so many calls, with its state on the device.
pub(crate) fn train(bundle: &Path, inputs: &Path, steps: usize) -> Result<Function, Box<dyn Error>> {
    let program = Program::open(bundle)?.load(DeviceOptions::default())?;
    let mut step = program.function("main")?;
    let inputs = TensorFile::open(inputs)?;
    for (name, ..) in inputs.tensors() {
        // Inputs stay what they are; states are given away, and become what the function returns.
        step.set(name, &inputs.read(name)?)?;
    }
    for _ in 0..steps {
        step.call()?;
    }
    Ok(step)
}
