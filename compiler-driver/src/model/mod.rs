//! Models and their weights: presets, folders in Hugging Face's format, GGUF files, and random checkpoints.

pub(crate) mod checkpoint;
pub(crate) mod files;
pub(crate) mod gguf;
#[cfg(test)]
mod gguf_architectures;
pub(crate) mod random;
pub(crate) mod sentence;
pub(crate) mod source;
pub(crate) mod tensor_file;
