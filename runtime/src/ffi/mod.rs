//! The unsafe code of the workspace: files mapped into memory, and IREE behind the C shim in `native/`.

#![allow(unsafe_code)]

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
mod thread;

pub(crate) use map::map;
#[cfg(feature = "iree")]
pub(crate) use shim::{
    Call, Device, Element, Input, Module, ParameterSource, Tensor, bytes, devices, request_amx,
};
#[cfg(feature = "iree")]
pub(crate) use thread::BatchThread;

#[cfg(test)]
#[cfg(feature = "iree")]
pub(crate) mod tests;
