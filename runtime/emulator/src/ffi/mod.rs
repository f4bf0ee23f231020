//! The driver's functions, as <https://docs.nvidia.com/cuda/cuda-driver-api/> has them, and memory at the addresses that they give.
//! Handles are addresses of what they stand for.
#![allow(unsafe_code, reason = "the driver's interface is C, and kernels compute addresses")]

mod allocations;
pub mod client;
mod codes;
mod contexts;
mod counts;
mod device;
mod driver;
mod graphs;
mod modules;
pub mod nvml;
mod primary;
mod ranges;
mod schedule;
mod settings;
mod streams;

pub use driver::cuGetProcAddress;
pub use ranges::Memory;
pub(crate) use ranges::Ranges;
