//! A program with kernels of an address and a number, which a test calls through the driver.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use mlxcel_cuda_emulator::client::Program;

/// Returns a program with kernels `multiply` and `add`, which do so to the number at an address once they have waited for kernels
/// ahead, and `add_at_once`, which does not wait.
pub(crate) fn program() -> Program {
    const WAIT: &str = "griddepcontrol.wait;\n";
    let kernel = |name: &str, wait: &str, instruction: &str| {
        format!(
            ".visible .entry {name}(\n.param .u64 {name}_param_0,\n.param .u32 {name}_param_1\n)\n{{\n\
             .reg .b32 %r<4>;\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [{name}_param_0];\n\
             ld.param.b32 %r1, [{name}_param_1];\n{wait}ld.global.b32 %r2, [%rd1];\n{instruction} %r3, %r2, %r1;\n\
             st.global.b32 [%rd1], %r3;\nret;\n}}\n"
        )
    };
    let kernels = [
        kernel("multiply", WAIT, "mul.lo.s32"),
        kernel("add", WAIT, "add.s32"),
        kernel("add_at_once", "", "add.s32"),
    ];
    let kernels = kernels.concat();
    Program::load(&format!(".version 7.8\n.target sm_90\n.address_size 64\n\n{kernels}")).unwrap()
}
