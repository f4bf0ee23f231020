//! Attention over the cache.
//!
//! `layer.rs` projects. Then kernels rotate, cache and attend, on CPUs (`kernel.rs`) or on GPUs (`gpu.rs`), or generated code
//! does (`online.rs`).

mod gpu;
mod kernel;
mod layer;
mod online;
mod sequence;

pub(crate) use gpu::counters;
pub(crate) use layer::attention;
pub(crate) use sequence::{Division, PageTable, Rows};
