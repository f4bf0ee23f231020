//! Bundles on IREE.

use mlxcel_artifacts::Bundle;

use crate::{encoder::Encoder, error::Error, session::Session, weights::Weights};

#[cfg(feature = "iree")]
mod encoder;
#[cfg(feature = "iree")]
mod loaded;
mod options;
#[cfg(feature = "iree")]
mod packing;
#[cfg(feature = "iree")]
mod select;
#[cfg(feature = "iree")]
mod session;
#[cfg(feature = "iree")]
mod vmfb;

pub use options::LoadOptions;

/// Loads the bundle's module for a device of this machine, with its parameters made of `weights`, a checkpoint; without
/// them of what the bundle carries.
///
/// The weights are read where they lie, in their mapped files. A device with memory of its own gets a copy, and so does
/// the CPU of a tensor that does not lie at a multiple of 64 bytes.
///
/// A module for the CPU is native code, and this runs it: load only bundles that you would run as a program.
///
/// # Errors
/// When the bundle has no target for the device or this machine, the weights are not those that the bundle needs, the
/// device cannot be used, or the bundle makes embeddings.
#[cfg(feature = "iree")]
pub fn load(
    bundle: &Bundle,
    weights: Option<Weights>,
    options: &LoadOptions,
) -> Result<Box<dyn Session>, Error> {
    Ok(Box::new(session::IreeSession::load(bundle, weights, options)?))
}

/// Loads a bundle that makes embeddings, as [`load`] does one that continues texts.
///
/// # Errors
/// As [`load`]; when the bundle makes none.
#[cfg(feature = "iree")]
pub fn load_encoder(
    bundle: &Bundle,
    weights: Option<Weights>,
    options: &LoadOptions,
) -> Result<Box<dyn Encoder>, Error> {
    Ok(Box::new(encoder::IreeEncoder::load(bundle, weights, options)?))
}

/// Packs the weights for the bundle's target that runs on the device, once for every later start; gives the target's name
/// and the bundle with them. `progress` gets the bytes written and those to write; `cancel` ends it, and the bundle is
/// then as it was.
///
/// # Errors
/// As [`load`]; when the target reads the weights as they are, or the bundle cannot be written.
#[cfg(feature = "iree")]
pub fn pack(
    bundle: Bundle,
    weights: Option<Weights>,
    options: &LoadOptions,
    cancel: &mlxcel_artifacts::Cancel,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(String, Bundle), Error> {
    packing::pack(bundle, weights, options, cancel, progress)
}

/// Answers that this crate was built without IREE.
///
/// # Errors
/// Always.
#[cfg(not(feature = "iree"))]
pub fn pack(
    _: Bundle,
    _: Option<Weights>,
    _: &LoadOptions,
    _: &mlxcel_artifacts::Cancel,
    _: &mut dyn FnMut(usize, usize),
) -> Result<(String, Bundle), Error> {
    Err(Error::BuiltWithoutIree)
}

/// Answers that this crate was built without IREE.
///
/// # Errors
/// Always.
#[cfg(not(feature = "iree"))]
pub fn load(_: &Bundle, _: Option<Weights>, _: &LoadOptions) -> Result<Box<dyn Session>, Error> {
    Err(Error::BuiltWithoutIree)
}

/// Answers that this crate was built without IREE.
///
/// # Errors
/// Always.
#[cfg(not(feature = "iree"))]
pub fn load_encoder(_: &Bundle, _: Option<Weights>, _: &LoadOptions) -> Result<Box<dyn Encoder>, Error> {
    Err(Error::BuiltWithoutIree)
}
