//! The unsafe code of the workspace: files mapped into memory, and IREE behind the C shim in `native/`.

#![allow(unsafe_code)]

#[cfg(feature = "iree")]
mod call;
#[cfg(feature = "iree")]
mod error;
mod map;
#[cfg(feature = "iree")]
mod raw;
#[cfg(feature = "iree")]
mod recording;
#[cfg(feature = "iree")]
mod shim;
#[cfg(feature = "iree")]
mod tensor;

#[cfg(feature = "iree")]
pub(crate) use call::{ArgumentType, Call, Input};
#[cfg(feature = "iree")]
pub(crate) use error::Error;
pub(crate) use map::map;
#[cfg(feature = "iree")]
pub(crate) use shim::{Device, FoundDevice, Module, ParameterSource, devices, request_amx};
#[cfg(feature = "iree")]
pub(crate) use tensor::{Element, Tensor, bytes};

#[cfg(test)]
#[cfg(feature = "iree")]
pub(crate) mod tests;
