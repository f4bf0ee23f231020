//! A CUDA driver without a GPU: it runs the PTX of a bundle on the CPU, so that tests can compare what it computes.
//!
//! [`cuGetProcAddress`] gives the functions of the driver that IREE calls. Work is done when it is submitted: a launch interprets the
//! kernel, some blocks at a time, whose warps take turns in an order that means nothing. What a GPU would not forgive is an error
//! with the place in the PTX: a load or store outside of every allocation, a shuffle that lanes miss, a barrier that threads never
//! reach, accesses of threads to the same bytes that nothing orders.
//!
//! Instructions are those of PTX ISA 8 that clang and iree-compile emit,
//! <https://docs.nvidia.com/cuda/parallel-thread-execution/>. Approximate ones (`ex2.approx`) are exact to the last bit but one, where
//! GPUs differ among themselves.

mod alu;
mod ffi;
mod machine;
mod ptx;
mod types;

pub use ffi::{Memory, client, cuGetProcAddress, nvml};
pub use machine::{Dimensions, Launch, Order, Overlap, Schedule, Written};
pub use ptx::{Error, Module};
