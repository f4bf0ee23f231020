//! A kernel of one address in PTX.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use mlxcel_cuda_emulator::{Dimensions, Launch, Memory, Module, Overlap, Schedule};

/// Returns a module of a kernel `k` of one address, with these registers and this body.
pub(crate) fn module(body: &str) -> Module {
    Module::parse(&text(body)).unwrap()
}

/// Returns the text of that module.
pub(crate) fn text(body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n\n\
         .visible .entry k(\n  .param .u64 .ptr .global .align 16 k_param_0\n)\n.maxntid 128, 1, 1\n{{\n\
         .reg .pred %p<4>;\n.reg .b16 %rs<4>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<12>;\n.shared .align 16 .b8 sums[1024];\n.local .align 4 .b8 own[4];\n\
         ld.param.b64 %rd1, [k_param_0]; // where numbers are\n\
         mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n{body}\n}}\n"
    )
}

/// Runs `k` on numbers with one block, and returns what has become of them, or the error.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn run(module: &Module, threads: u32, numbers: &[u32]) -> Result<Vec<u32>, String> {
    let mut numbers = numbers.to_vec();
    run_in_place(module, threads, &mut numbers, None).map(|()| numbers)
}

/// Runs `k` on numbers with one block, beside other kernels.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn run_in_place(
    module: &Module,
    threads: u32,
    numbers: &mut [u32],
    overlap: Option<Overlap<'_>>,
) -> Result<(), String> {
    Memory::lend(numbers, |memory, place| {
        let launch = Launch {
            kernel: "k",
            grid: Dimensions([1, 1, 1]),
            block: Dimensions([threads, 1, 1]),
            shared: 0,
            shared_allowed: None,
            parameters: vec![place.to_le_bytes().to_vec()],
            overlap,
            schedule: Schedule::default(),
        };
        launch.run(module, memory).map_err(|error| error.to_string())
    })
}

/// Runs `k` on numbers with some blocks of some threads, in some order.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn run_by(
    module: &Module,
    (grid, block): (Dimensions, Dimensions),
    numbers: &mut [u32],
    schedule: Schedule,
) -> Result<(), String> {
    Memory::lend(numbers, |memory, place| {
        let parameters = vec![place.to_le_bytes().to_vec()];
        let launch = Launch {
            kernel: "k",
            grid,
            block,
            shared: 0,
            shared_allowed: None,
            parameters,
            overlap: None,
            schedule,
        };
        launch.run(module, memory).map_err(|error| error.to_string())
    })
}

/// Runs `k` with so many bytes of dynamic shared memory, where it was allowed some.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn launch(
    module: &Module,
    (grid, block): (Dimensions, Dimensions),
    (shared, shared_allowed): (usize, Option<usize>),
) -> Result<(), String> {
    let parameters = vec![vec![0; 8]];
    let schedule = Schedule::default();
    let launch =
        Launch { kernel: "k", grid, block, shared, shared_allowed, parameters, overlap: None, schedule };
    launch.run(module, &Memory::new()).map_err(|error| error.to_string())
}
