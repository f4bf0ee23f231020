//! Measurements: beside llama.cpp and sentence-transformers, and of single costs.

pub(crate) mod embeddings;
pub(crate) mod opening;
pub(crate) mod peers;
pub(crate) mod sparse;
mod stats;
