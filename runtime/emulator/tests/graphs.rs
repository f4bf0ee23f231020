//! Graphs of kernels, launched through the driver's functions.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod programs;

use mlxcel_cuda_emulator::client::{Graph, Node, Numbers, synchronize};
use programs::program;

/// What the driver says of a wrong argument, and of a kernel that failed.
const INVALID_VALUE: i32 = 1;
const LAUNCH_FAILED: i32 = 719;

#[test]
fn parameters_are_those_of_when_a_kernel_was_added() {
    let program = program();
    let numbers = Numbers::new(&[5, 7]).unwrap();
    let mut parameters = [numbers.place(), 10];
    let mut graph = Graph::new().unwrap();
    let first = graph.add(program.kernel("add").unwrap(), &parameters, &[]).unwrap();
    parameters = [numbers.place() + 4, 100];
    graph.add(program.kernel("multiply").unwrap(), &parameters, &[first]).unwrap();
    parameters = [0, 0];
    let executable = graph.instantiate().unwrap();
    // Adding does not run anything, nor does instantiating.
    assert_eq!((numbers.read().unwrap(), parameters), (vec![5, 7], [0, 0]));
    executable.launch().unwrap();
    synchronize().unwrap();
    assert_eq!(numbers.read().unwrap(), [15, 700]);
}

#[test]
fn a_graph_is_launched_again_and_outlives_what_it_was_made_of() {
    let program = program();
    let numbers = Numbers::new(&[1]).unwrap();
    let add = program.kernel("add").unwrap();
    let mut graph = Graph::new().unwrap();
    graph.add(program.kernel("multiply").unwrap(), &[numbers.place(), 3], &[]).unwrap();
    let executable = graph.instantiate().unwrap();
    // What is added later is not a part of it.
    graph.add(add, &[numbers.place(), 1000], &[]).unwrap();
    drop(graph);
    executable.launch().unwrap();
    assert_eq!(numbers.read().unwrap(), [3]);
    // Kernels find what is in memory when they run.
    add.launch(&[numbers.place(), 2]).unwrap();
    executable.launch().unwrap();
    assert_eq!(numbers.read().unwrap(), [15]);
}

#[test]
fn kernels_wait_for_the_one_before_only_if_they_depend_on_it() {
    let program = program();
    let [add, multiply] = ["add", "multiply"].map(|name| program.kernel(name).unwrap());
    // (2 + 1) * 10 + 4, where each waits for the one before, or does not.
    let computed = |is_ordered: bool, port: Option<u8>| {
        let numbers = Numbers::new(&[2]).unwrap();
        let mut graph = Graph::new().unwrap();
        let mut before: Vec<Node> = Vec::new();
        for (kernel, number) in [(add, 1), (multiply, 10), (add, 4)] {
            let parameters = [numbers.place(), number];
            let node = match port {
                Some(port) => graph.add_early(kernel, &parameters, &before, port),
                None => graph.add(kernel, &parameters, &before),
            };
            if is_ordered {
                before = vec![node.unwrap()];
            }
        }
        graph.instantiate().unwrap().launch().unwrap();
        numbers.read().unwrap()[0]
    };
    assert_eq!(computed(true, None), 34);
    // Kernels that wait for those ahead may begin early.
    assert_eq!(computed(true, Some(1)), 34);
    assert_eq!(computed(true, Some(2)), 34);
    // Without dependencies the last one comes first: (2 + 4) * 10 + 1.
    assert_eq!(computed(false, None), 61);
    assert_eq!(computed(false, Some(1)), 61);
}

#[test]
fn a_kernel_that_does_not_wait_may_not_begin_early() {
    let program = program();
    let [add, at_once] = ["add", "add_at_once"].map(|name| program.kernel(name).unwrap());
    let launched = |is_early: bool| {
        let numbers = Numbers::new(&[2]).unwrap();
        let parameters = [numbers.place(), 3];
        let mut graph = Graph::new().unwrap();
        let first = graph.add(add, &parameters, &[]).unwrap();
        if is_early {
            graph.add_early(at_once, &parameters, &[first], 1).unwrap();
        } else {
            graph.add(at_once, &parameters, &[first]).unwrap();
        }
        graph.instantiate().unwrap().launch().map(|()| numbers.read().unwrap())
    };
    assert_eq!(launched(false), Ok(vec![8]));
    assert_eq!(launched(true), Err(LAUNCH_FAILED));
}

#[test]
fn a_kernel_waits_for_all_that_it_depends_on() {
    let program = program();
    let [add, multiply] = ["add", "multiply"].map(|name| program.kernel(name).unwrap());
    let numbers = Numbers::new(&[2]).unwrap();
    let mut graph = Graph::new().unwrap();
    let first = graph.add(multiply, &[numbers.place(), 2], &[]).unwrap();
    let sides = [10, 20].map(|number| graph.add(add, &[numbers.place(), number], &[first]).unwrap());
    graph.add(multiply, &[numbers.place(), 3], &sides).unwrap();
    graph.instantiate().unwrap().launch().unwrap();
    assert_eq!(numbers.read().unwrap(), [(2 * 2 + 10 + 20) * 3]);
}

#[test]
fn what_is_wrong_is_refused() {
    let program = program();
    let add = program.kernel("add").unwrap();
    let numbers = Numbers::new(&[2]).unwrap();
    let parameters = [numbers.place(), 1];
    let mut graph = Graph::new().unwrap();
    let node = graph.add(add, &parameters, &[]).unwrap();
    let mut other = Graph::new().unwrap();
    assert_eq!(other.add(add, &parameters, &[node]).unwrap_err(), INVALID_VALUE);
    assert_eq!(graph.add_early(add, &parameters, &[node], 3).unwrap_err(), INVALID_VALUE);
    // Port 0 is that of a kernel's end, which nothing reaches early.
    assert_eq!(graph.add_early(add, &parameters, &[node], 0).unwrap_err(), INVALID_VALUE);
    // The kernel of the second graph stores to no memory.
    other.add(add, &[16, 1], &[]).unwrap();
    assert_eq!(other.instantiate().unwrap().launch().unwrap_err(), LAUNCH_FAILED);
    graph.instantiate().unwrap().launch().unwrap();
    assert_eq!(numbers.read().unwrap(), [3]);
}
