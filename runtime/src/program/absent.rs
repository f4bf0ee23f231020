//! Programs where this crate was built without IREE: none is ever loaded.

use mlxcel_artifacts::{Tensor, entry::Entry};
use safetensors::Dtype;

use super::bundle::{DeviceOptions, Program};
use crate::{device::DeviceInfo, error::Error};

/// A program on a device, of which there is none.
#[derive(Debug)]
pub enum LoadedProgram {}

/// A function of a loaded program, of which there is none.
#[derive(Debug)]
pub enum Function {}

impl Program {
    /// Fails, because this crate was built without IREE.
    ///
    /// # Errors
    /// Always [`Error::BuiltWithoutIree`].
    pub fn load(&self, _: DeviceOptions) -> Result<LoadedProgram, Error> {
        Err(Error::BuiltWithoutIree)
    }
}

#[expect(missing_docs, clippy::missing_errors_doc, reason = "none of them is ever called")]
impl LoadedProgram {
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        match *self {}
    }

    #[must_use]
    pub fn functions(&self) -> &[Entry] {
        match *self {}
    }

    pub fn function(&self, _: &str) -> Result<Function, Error> {
        match *self {}
    }
}

#[expect(missing_docs, clippy::missing_errors_doc, reason = "none of them is ever called")]
impl Function {
    #[must_use]
    pub fn entry(&self) -> &Entry {
        match *self {}
    }

    pub fn set(&mut self, _: &str, _: &Tensor) -> Result<(), Error> {
        match *self {}
    }

    pub fn set_bytes(&mut self, _: &str, _: Dtype, _: &[usize], _: &[u8]) -> Result<(), Error> {
        match *self {}
    }

    pub fn read_into(&self, _: &str, _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }

    pub fn call(&mut self) -> Result<(), Error> {
        match *self {}
    }

    pub fn read(&self, _: &str) -> Result<Tensor, Error> {
        match *self {}
    }
}
