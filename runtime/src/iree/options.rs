//! Options of loading a bundle.

use crate::device::DeviceSpec;

/// The device to load a bundle on, and the limits of the session.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The device.
    pub device: DeviceSpec,
    /// Threads of [`DeviceSpec::LocalTask`]; `None` is one for each physical core.
    pub threads: Option<usize>,
    /// Tokens of context, at most the bundle's; `None` is the bundle's context.
    pub context: Option<usize>,
}
