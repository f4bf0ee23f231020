//! Models and encoders on IREE.

use mlxcel_artifacts::Bundle;
#[cfg(feature = "iree")]
use mlxcel_artifacts::IREE_VERSION;

use crate::{encoder::contract::Encoder, error::Error, model::ModelRunner, weights::Weights};

#[cfg(feature = "iree")]
mod best;
#[cfg(feature = "iree")]
mod calibration;
#[cfg(feature = "iree")]
mod encoder;
#[cfg(feature = "iree")]
mod entry_point;
#[cfg(feature = "iree")]
mod function;
#[cfg(feature = "iree")]
pub(crate) mod loaded;
#[cfg(feature = "iree")]
mod lost;
mod memory;
#[cfg(feature = "iree")]
mod model;
mod options;
#[cfg(feature = "iree")]
mod packing;
#[cfg(feature = "iree")]
mod pages;
#[cfg(feature = "iree")]
pub(crate) mod select;
#[cfg(feature = "iree")]
mod vmfb;

/// Returns whether two versions are the same. `==` is not const.
#[cfg(feature = "iree")]
const fn is_same(found: Option<&str>, expected: &str) -> bool {
    let Some(found) = found else { return true };
    let (found, expected) = (found.as_bytes(), expected.as_bytes());
    let mut at = 0;
    while at < found.len() && at < expected.len() && found[at] == expected[at] {
        at += 1;
    }
    at == found.len() && at == expected.len()
}

/// The version of the source that the runtime is built from. Nothing is built for clippy.
#[cfg(feature = "iree")]
const SOURCE_VERSION: Option<&str> = option_env!("MLXCEL_IREE_SOURCE_VERSION");

#[cfg(feature = "iree")]
const _: () = assert!(
    is_same(SOURCE_VERSION, IREE_VERSION),
    "found an IREE source of another version than bundles are compiled with\n\
     hint: unset MLXCEL_IREE_SOURCE, or name a checkout of the version in artifacts/src/iree.rs"
);

pub use memory::free_memory;
pub use options::{Calibrate, LoadOptions};

/// Loads a bundle that continues texts on a device of this machine.
///
/// `weights` is a checkpoint; `None` uses the weights that the bundle carries. The CPU reads weights in their mapped
/// files, but copies a tensor that is not aligned to 64 bytes. Devices with memory of their own get a copy.
///
/// [`Engine`](crate::engine::Engine) answers requests with it. The cache is reserved here, in the size of the options.
///
/// A module for the CPU is native code, and loading it runs it. Load only bundles that you would run as a program.
///
/// # Errors
/// The bundle has no target for the device or this machine, the weights are of another model, the device cannot be used,
/// there is no memory for the cache, or the bundle makes embeddings.
#[cfg(feature = "iree")]
pub fn load(
    bundle: &Bundle,
    weights: Option<Weights>,
    options: &LoadOptions,
) -> Result<Box<dyn ModelRunner>, Error> {
    Ok(Box::new(model::IreeModel::load(bundle, weights, options)?))
}

/// Loads a bundle that makes embeddings on a device of this machine; see [`load`].
///
/// # Errors
/// [`load`] would fail, or the bundle makes no embeddings.
#[cfg(feature = "iree")]
pub fn load_encoder(
    bundle: &Bundle,
    weights: Option<Weights>,
    options: &LoadOptions,
) -> Result<Box<dyn Encoder>, Error> {
    Ok(Box::new(encoder::IreeEncoder::load(bundle, weights, options)?))
}

/// Packs the weights for the target that runs on the device, so that later starts need not.
///
/// Returns the target's name and the bundle with its packed weights. `progress` gets the bytes written and their total.
/// If `cancel` is set, packing ends and leaves the bundle as it was. What calibration has collected stays beside the bundle
/// then, or in [`Calibrate::keep_in`], and the next call with the same text goes on.
///
/// # Errors
/// [`load`] would fail, the target reads the weights as they are, the text is too short or the target does not calibrate, or
/// the bundle cannot be written.
#[cfg(feature = "iree")]
pub fn pack(
    bundle: Bundle,
    weights: Option<Weights>,
    options: &LoadOptions,
    calibrate: Option<Calibrate<'_>>,
    cancel: &mlxcel_artifacts::Cancel,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(String, Bundle), Error> {
    packing::pack(bundle, weights, options, calibrate, cancel, progress)
}

/// Fails, because this crate was built without IREE.
///
/// # Errors
/// Always [`Error::BuiltWithoutIree`].
#[cfg(not(feature = "iree"))]
pub fn pack(
    _: Bundle,
    _: Option<Weights>,
    _: &LoadOptions,
    _: Option<Calibrate<'_>>,
    _: &mlxcel_artifacts::Cancel,
    _: &mut dyn FnMut(usize, usize),
) -> Result<(String, Bundle), Error> {
    Err(Error::BuiltWithoutIree)
}

/// Fails, because this crate was built without IREE.
///
/// # Errors
/// Always [`Error::BuiltWithoutIree`].
#[cfg(not(feature = "iree"))]
pub fn load(_: &Bundle, _: Option<Weights>, _: &LoadOptions) -> Result<Box<dyn ModelRunner>, Error> {
    Err(Error::BuiltWithoutIree)
}

/// Fails, because this crate was built without IREE.
///
/// # Errors
/// Always [`Error::BuiltWithoutIree`].
#[cfg(not(feature = "iree"))]
pub fn load_encoder(_: &Bundle, _: Option<Weights>, _: &LoadOptions) -> Result<Box<dyn Encoder>, Error> {
    Err(Error::BuiltWithoutIree)
}
