//! Tensors on the host, and the files of NumPy and safetensors that hold them.

pub(crate) mod dtypes;
pub(crate) mod element;
pub(crate) mod error;
pub(crate) mod file;
mod npy;
mod npz;
mod safetensors_file;
pub(crate) mod value;
pub(crate) mod write;
