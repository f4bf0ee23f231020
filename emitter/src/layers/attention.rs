//! Attention over the cache.
//!
//! `layer.rs` projects. Then kernels rotate, cache and attend (`kernel.rs`), or generated code does (`online.rs`). On some GPUs
//! generated code rotates and caches, and kernels attend (`gpu.rs`).

mod gpu;
mod kernel;
mod layer;
mod online;
mod sequence;

pub(crate) use layer::attention;
pub(crate) use sequence::{Division, PageTable, Rows};
