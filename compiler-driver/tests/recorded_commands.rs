//! What iree-compile makes of a model's functions on a GPU, before it writes the module: commands that are recorded once, when the
//! module is loaded, and what each call asks of the device.

use std::{collections::BTreeMap, fmt::Write as _, fs, process::Command};

use mlxcel_compiler_driver::Request;

use crate::{
    emulated::for_gpu,
    real::{self, Fixture, toolchain},
};

/// Operations of IREE's HAL that a call takes time for. Others read arguments and make results.
const OF_CALLS: [&str; 5] = [
    "hal.device.queue.",
    "hal.fence.await",
    "hal.buffer.load",
    "hal.allocator.allocate",
    "hal.command_buffer.",
];

/// Compiles a fixture as far as the HAL, with the flags that its bundle is made with.
fn hal(fixture: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let request = for_gpu(&Fixture::find(fixture), "cuda");
    drop(real::built(&Request { dump_dir: Some(folder.path().into()), ..request }));
    let flags = fs::read_to_string(at("cuda.flags")).unwrap();
    // Files of kernels are named without their folder.
    let mut command = Command::new(toolchain().join("iree/iree/compiler/_mlir_libs/iree-compile"));
    command.current_dir(folder.path()).args(flags.lines()).args([
        "--compile-to=hal",
        "cuda.mlir",
        "-o",
        "hal.mlir",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(at("hal.mlir")).unwrap()
}

/// Returns the operations of each function that a call takes time for: those of calls in order, and of those that are recorded how
/// many there are.
fn operations(module: &str) -> String {
    let mut functions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = None;
    for line in module.lines().map(str::trim_start) {
        if line.starts_with("util.func ") {
            name = line.split(['@', '(']).nth(1);
        } else if line.starts_with("util.initializer") {
            name = None;
        }
        let operation = line.split_whitespace().find(|word| OF_CALLS.iter().any(|of| word.starts_with(of)));
        if let Some((name, operation)) = name.zip(operation) {
            functions.entry(name).or_default().push(operation.split(['<', '(']).next().unwrap());
        }
    }
    let mut text = String::new();
    for (name, mut operations) in functions {
        if name.ends_with("memoize_apply") {
            operations.sort_unstable();
        }
        writeln!(text, "{name}").unwrap();
        for same in operations.chunk_by(|one, other| one == other) {
            writeln!(text, "  {} {}", same.len(), same[0]).unwrap();
        }
    }
    text
}

#[test]
fn a_call_submits_what_was_recorded_and_waits_once() {
    insta::assert_snapshot!(operations(&hal("gqa")), @"
    __best_1_memoize_apply
      1 hal.command_buffer.create
      8 hal.command_buffer.dispatch
      6 hal.command_buffer.execution_barrier
      1 hal.command_buffer.finalize
    __step_1_memoize_apply
      1 hal.command_buffer.create
      15 hal.command_buffer.dispatch
      13 hal.command_buffer.execution_barrier
      1 hal.command_buffer.finalize
    __step_32_memoize_apply
      1 hal.command_buffer.create
      24 hal.command_buffer.dispatch
      21 hal.command_buffer.execution_barrier
      1 hal.command_buffer.finalize
    best_1
      2 hal.device.queue.alloca
      1 hal.device.queue.execute.indirect
      1 hal.device.queue.dealloca
      1 hal.fence.await
    step_1
      1 hal.device.queue.execute.indirect
      1 hal.fence.await
    step_32
      1 hal.device.queue.alloca
      1 hal.device.queue.execute.indirect
      1 hal.device.queue.dealloca
      1 hal.fence.await
    ");
}
