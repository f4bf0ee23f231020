//! The schemes, each with the keys and the tensors that it has.

pub(super) mod awq;
pub(super) mod bitsandbytes;
pub(super) mod compressed_tensors;
pub(super) mod fp8;
pub(crate) mod gguf;
pub(super) mod gptq;
pub(super) mod mlx;
pub(super) mod modelopt;
pub(super) mod mxfp4;
pub(super) mod torchao;

mod names;
pub(super) mod numbers;
