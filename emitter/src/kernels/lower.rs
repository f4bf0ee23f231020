//! Executables as MLIR text.

mod cpu;
mod cuda;

use super::executable::Executable;

/// Returns an executable as an op of one of IREE's dialects.
pub(crate) fn to_mlir(executable: &Executable) -> String {
    if executable.is_gpu() { cuda::to_mlir(executable) } else { cpu::to_mlir(executable) }
}
