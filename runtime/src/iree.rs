//! Bundles on IREE.

use mlxcel_artifacts::Bundle;

use crate::{Error, device::DeviceSpec, session::Session, weights::Weights};

#[cfg(feature = "iree")]
mod device;
#[cfg(feature = "iree")]
mod session;

/// How a bundle is to be run.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// What to run it on.
    pub device: DeviceSpec,
    /// Threads of [`DeviceSpec::LocalTask`]; `None` is one for each physical core.
    pub threads: Option<usize>,
    /// Tokens of context, at most what the bundle was compiled for; `None` is all of it.
    pub context: Option<usize>,
}

/// Loads the bundle's module for a device of this machine, with `weights` as its parameters.
///
/// The weights are read where they lie, in their mapped files. A device with memory of its own gets a copy, and so does
/// the CPU of a tensor that does not lie at a multiple of 64 bytes.
///
/// A module for the CPU is native code, and this runs it: load only bundles that you would run as a program.
///
/// # Errors
/// When the bundle has no target for the device or this machine, the weights are not those that the bundle needs, or
/// the device cannot be used.
#[cfg(feature = "iree")]
pub fn load(bundle: &Bundle, weights: Weights, options: &LoadOptions) -> Result<Box<dyn Session>, Error> {
    Ok(Box::new(session::IreeSession::load(bundle, weights, options)?))
}

/// Answers that this crate was built without IREE.
///
/// # Errors
/// Always.
#[cfg(not(feature = "iree"))]
pub fn load(_: &Bundle, _: Weights, _: &LoadOptions) -> Result<Box<dyn Session>, Error> {
    Err(Error::BuiltWithoutIree)
}
