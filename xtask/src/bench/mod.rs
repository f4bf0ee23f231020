//! Measurements: beside llama.cpp and sentence-transformers, and of single costs.

pub(crate) mod embeddings;
mod llama_cpp;
pub(crate) mod opening;
mod pairs;
pub(crate) mod peers;
mod ratio;
pub(crate) mod serving;
pub(crate) mod sparse;
mod stats;
