//! Tensors on the host, and the files of NumPy and safetensors that hold them.

pub(crate) mod dtypes;
pub(crate) mod element;
pub(crate) mod error;
mod expected;
pub(crate) mod file;
mod npy;
mod npz;
pub(crate) mod safetensors_file;
pub(crate) mod value;
pub(crate) mod write;
