//! Measurements: beside llama.cpp, and of single costs.

pub(crate) mod opening;
pub(crate) mod peers;
pub(crate) mod sparse;
mod stats;
