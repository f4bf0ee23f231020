//! Kernels that a program is linked with: object files for CPUs and PTX for GPUs that somebody else compiled.

mod elf;
mod file;
mod linked;
mod problem;
mod ptx;

pub(crate) use linked::Kernels;
pub use problem::KernelError;
