//! Measurements: beside llama.cpp, MLX, sentence-transformers and JAX, and of single costs.

pub(crate) mod embeddings;
mod llama_cpp;
pub(crate) mod opening;
mod pairs;
pub(crate) mod peers;
pub(crate) mod programs;
pub(crate) mod python;
pub(crate) mod quantized;
mod ratio;
mod record;
pub(crate) mod serving;
pub(crate) mod sparse;
mod stats;
