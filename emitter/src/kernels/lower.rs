//! Executables as MLIR text.

mod cpu;
mod cuda;

use super::executable::Executable;

/// Returns executables as ops of IREE's dialects.
pub(crate) fn to_mlir<'a>(executables: impl Iterator<Item = &'a Executable>) -> String {
    let (gpu, cpu): (Vec<_>, Vec<_>) = executables.partition(|executable| executable.is_gpu());
    let cpu = if cpu.is_empty() { String::new() } else { cpu::to_mlir(&cpu) };
    gpu.into_iter().map(cuda::to_mlir).chain([cpu]).collect()
}
