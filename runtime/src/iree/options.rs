//! How a bundle is to be run.

use crate::device::DeviceSpec;

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
