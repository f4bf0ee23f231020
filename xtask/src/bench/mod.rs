//! Measurements: beside llama.cpp, sentence-transformers and JAX, and of single costs.

pub(crate) mod embeddings;
mod llama_cpp;
pub(crate) mod opening;
mod pairs;
pub(crate) mod peers;
pub(crate) mod programs;
pub(crate) mod python;
mod ratio;
mod record;
pub(crate) mod serving;
pub(crate) mod sparse;
mod stats;
