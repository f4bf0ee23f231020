//! A kernel of one address in PTX.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use mlxcel_cuda_emulator::{Dimensions, Launch, Memory, Module, Overlap};

/// Returns a module of a kernel `k` of one address, with these registers and this body.
pub(crate) fn module(body: &str) -> Module {
    Module::parse(&text(body)).unwrap()
}

/// Returns the text of that module.
pub(crate) fn text(body: &str) -> String {
    format!(
        ".version 7.6\n.target sm_80\n.address_size 64\n\n\
         .visible .entry k(\n  .param .u64 .ptr .global .align 16 k_param_0\n)\n.maxntid 64, 1, 1\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<12>;\n.shared .align 16 .b8 sums[1024];\n\
         ld.param.b64 %rd1, [k_param_0]; // where numbers are\n\
         mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n{body}\n}}\n"
    )
}

/// Runs `k` on numbers with one block, and returns what has become of them, or the error.
pub(crate) fn run(module: &Module, threads: u32, numbers: &[u32]) -> Result<Vec<u32>, String> {
    let mut numbers = numbers.to_vec();
    run_in_place(module, threads, &mut numbers, None).map(|()| numbers)
}

/// Runs `k` on numbers with one block, beside other kernels.
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
            parameters: vec![place.to_le_bytes().to_vec()],
            overlap,
        };
        launch.run(module, memory).map_err(|error| error.to_string())
    })
}
