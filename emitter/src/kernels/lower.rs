//! Executables as MLIR text.

mod chain;
mod cpu;
mod cuda;
mod parameters;

use super::{chain::Chain, executable::Executable};

/// Returns executables and chains as ops of IREE's dialects.
pub(crate) fn to_mlir<'a>(executables: impl Iterator<Item = &'a Executable>, chains: &[Chain]) -> String {
    let (gpu, cpu): (Vec<_>, Vec<_>) = executables.partition(|executable| executable.is_gpu());
    let cpu = if cpu.is_empty() && chains.is_empty() { String::new() } else { cpu::to_mlir(&cpu, chains) };
    gpu.into_iter().map(cuda::to_mlir).chain([cpu]).collect()
}
