//! The file with what a program asked of the driver.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod programs;

use std::{env, fs, path::Path, process::Command};

use mlxcel_cuda_emulator::client::{Graph, Numbers, synchronize};
use programs::program;

/// The variable with the file.
const FILE: &str = "MLXCEL_EMULATOR_COUNTS";
/// The variable that a process has which makes the calls: the driver looks for the file once.
const CHILD: &str = "MLXCEL_EMULATOR_COUNTS_CHILD";

/// Runs this test in another process, which makes the calls.
fn call(file: Option<&Path>) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "calls_are_lines_of_a_file"]).env(CHILD, "1").env_remove(FILE);
    if let Some(file) = file {
        command.env(FILE, file);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn calls() {
    let program = program();
    let numbers = Numbers::new(&[2]).unwrap();
    let [add, multiply] = ["add", "multiply"].map(|name| program.kernel(name).unwrap());
    let parameters = [numbers.place(), 3];
    add.launch(&parameters).unwrap();
    let mut graph = Graph::new().unwrap();
    let first = graph.add(multiply, &parameters, &[]).unwrap();
    graph.add(add, &parameters, &[first]).unwrap();
    graph.instantiate().unwrap().launch().unwrap();
    synchronize().unwrap();
    assert_eq!(numbers.read().unwrap(), [(2 + 3) * 3 + 3]);
}

#[test]
fn calls_are_lines_of_a_file() {
    if env::var_os(CHILD).is_some() {
        return calls();
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls.txt");
    let _ = fs::remove_file(&file);
    call(None);
    assert!(!file.exists());
    call(Some(&file));
    let expected = [
        "cuMemAlloc",
        "cuMemcpyHtoDAsync",
        "cuLaunchKernel add",
        "cuGraphLaunch",
        "kernel multiply",
        "kernel add",
        "cuStreamSynchronize",
        "cuMemcpyAsync",
        "cuMemFreeAsync",
    ];
    assert_eq!(fs::read_to_string(&file).unwrap().lines().collect::<Vec<_>>(), expected);
    // Those of another process follow.
    call(Some(&file));
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2 * expected.len());
}
