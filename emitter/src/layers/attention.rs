//! Attention over the cache.
//!
//! `layer.rs` projects, rotates and caches. Then a kernel attends (`kernel.rs`), or generated code does (`online.rs`).

mod kernel;
mod layer;
mod online;
mod sequence;
mod sinks;

pub(crate) use layer::attention;
pub(crate) use sequence::{Sequence, Span};
