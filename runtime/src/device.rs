//! The device that a bundle runs on, as the command line names it.

use std::{fmt, str::FromStr};

use mlxcel_artifacts::Driver;

/// A device to run on: `auto`, `local-task`, `local-sync`, `cuda`, `cuda:1`, `vulkan` or `vulkan:1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceSpec {
    /// The best device that the bundle has a target for: an NVIDIA GPU, another GPU by Vulkan, the CPU, or else a
    /// Vulkan device that is the CPU itself.
    #[default]
    Auto,
    /// The CPU, with several threads.
    LocalTask,
    /// The CPU, on the calling thread.
    LocalSync,
    /// An NVIDIA GPU: the one with this index, or the driver's choice.
    Cuda(Option<u32>),
    /// A Vulkan device: the one with this index, or the driver's choice.
    Vulkan(Option<u32>),
}

/// What a loaded bundle runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The bundle's target that runs.
    pub target: String,
    /// The device, for messages: `local-task, 2 threads`.
    pub name: String,
    /// CPU threads that compute; 1 if another device computes.
    pub threads: usize,
    /// True if loading packed the weights for the device, which [`pack`](crate::pack) does once, ahead of time.
    pub packed_at_load: bool,
}

impl DeviceSpec {
    /// Returns the driver of the device; `None` for [`DeviceSpec::Auto`].
    #[must_use]
    pub fn driver(self) -> Option<Driver> {
        match self {
            Self::Auto => None,
            Self::LocalTask | Self::LocalSync => Some(Driver::Local),
            Self::Cuda(_) => Some(Driver::Cuda),
            Self::Vulkan(_) => Some(Driver::Vulkan),
        }
    }

    /// Returns a warning if a number of threads was given and this device does not use it.
    #[must_use]
    pub fn threads_without_effect(self, threads: Option<usize>) -> Option<String> {
        let ignored = threads.is_some() && !matches!(self, Self::Auto | Self::LocalTask);
        ignored.then(|| format!("warning: --threads has no effect on {self}: it is for local-task"))
    }

    /// Returns the index among the driver's devices; `None` is the driver's choice.
    #[must_use]
    pub fn index(self) -> Option<u32> {
        match self {
            Self::Cuda(index) | Self::Vulkan(index) => index,
            Self::Auto | Self::LocalTask | Self::LocalSync => None,
        }
    }

    /// Returns the name without the index.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::LocalTask => "local-task",
            Self::LocalSync => "local-sync",
            Self::Cuda(_) => "cuda",
            Self::Vulkan(_) => "vulkan",
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.index().map_or(Ok(()), |index| write!(f, ":{index}"))
    }
}

/// The error of a text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown device `{}`, expected auto, local-task, local-sync, cuda[:index] or vulkan[:index]\n\
     hint: auto takes the best device of this machine",
    .0.escape_default()
)]
pub struct ParseDeviceError(String);

impl FromStr for DeviceSpec {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDeviceError(text.into());
        let (name, index) = match text.split_once(':') {
            // `parse` alone would accept a sign.
            Some((name, index)) if index.bytes().all(|b| b.is_ascii_digit()) => {
                (name, Some(index.parse().map_err(|_| error())?))
            }
            Some(_) => return Err(error()),
            None => (text, None),
        };
        match (name, index) {
            ("auto", None) => Ok(Self::Auto),
            ("local-task", None) => Ok(Self::LocalTask),
            ("local-sync", None) => Ok(Self::LocalSync),
            ("cuda", index) => Ok(Self::Cuda(index)),
            ("vulkan", index) => Ok(Self::Vulkan(index)),
            _ => Err(error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["auto", "local-task", "local-sync", "cuda", "cuda:0", "cuda:12", "vulkan", "vulkan:1"] {
            assert_eq!(name.parse::<DeviceSpec>().unwrap().to_string(), name);
        }
        assert_eq!("cuda:3".parse(), Ok(DeviceSpec::Cuda(Some(3))));
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            "CUDA",
            "cuda:",
            "cuda:-1",
            "cuda:+1",
            "cuda:4294967296",
            "cuda:1:2",
            "auto:0",
            "local-task:2",
            "gpu",
        ] {
            assert!(name.parse::<DeviceSpec>().is_err(), "{name}");
        }
        assert_eq!(
            "rocm\n".parse::<DeviceSpec>().unwrap_err().to_string(),
            "unknown device `rocm\\n`, expected auto, local-task, local-sync, cuda[:index] or vulkan[:index]\n\
             hint: auto takes the best device of this machine"
        );
    }
}
