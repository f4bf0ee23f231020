//! Options of loading a bundle.

use std::{fmt, path::PathBuf};

#[cfg(feature = "iree")]
use super::select::DeviceChoice;
use crate::{cache_size::CacheSize, device::DeviceSpec, trace::Trace};

/// A text to calibrate by: weights are rounded so that the products of its tokens lose little.
pub struct Calibrate<'c> {
    /// The text.
    pub text: &'c str,
    /// The folder of the files that keep what was collected, until packing is complete. By default they have a folder of their
    /// own beside the bundle.
    pub keep_in: Option<PathBuf>,
    /// Gets the calls done and their total.
    pub progress: &'c mut dyn FnMut(usize, usize),
}

impl fmt::Debug for Calibrate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calibrate").field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

/// The device to load a bundle on, and the limits of the model.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The device.
    pub device: DeviceSpec,
    /// Threads of [`DeviceSpec::LocalTask`]; `None` is one for each physical core.
    pub threads: Option<usize>,
    /// Tokens of context, at most the bundle's; `None` is the bundle's context.
    pub context: Option<usize>,
    /// The size of the cache.
    pub cache: CacheSize,
    /// The most memory that is free for a cache whose size is a number of sequences; `None` is all that is free.
    pub cache_memory: Option<u64>,
    /// The timeline on which loading and the device are recorded; off by default.
    pub trace: Trace,
}

#[cfg(feature = "iree")]
impl LoadOptions {
    /// Returns the device to open. A model's steps are long enough for several threads.
    pub(super) fn device_choice(&self) -> DeviceChoice {
        DeviceChoice {
            asked: self.device,
            threads: self.threads,
            cpu: DeviceSpec::LocalTask,
            trace: self.trace.clone(),
        }
    }
}
