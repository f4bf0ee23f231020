//! Attention over the cache.
//!
//! `layer.rs` projects. Then kernels rotate, cache and attend (`kernel.rs`), or generated code does (`online.rs`).

mod kernel;
mod layer;
mod online;
mod sequence;

pub(crate) use layer::attention;
pub(crate) use sequence::{Division, PageTable, Rows};
