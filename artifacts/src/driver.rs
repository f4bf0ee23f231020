//! Device drivers.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// An IREE HAL driver: the kind of device that runs a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Driver {
    /// The CPU: local-task or local-sync.
    Local,
    /// An NVIDIA GPU.
    Cuda,
    /// A Vulkan device.
    Vulkan,
    /// An AMD GPU. The runtime of this project has no such driver.
    Hip,
    /// An Apple GPU. The runtime of this project has no such driver.
    Metal,
}

/// What is said of targets whose driver is not in this project's runtime.
pub const NEVER_RUN: &str = "compiles; never run by us";

impl Driver {
    /// Every driver.
    pub const ALL: [Self; 5] = [Self::Local, Self::Cuda, Self::Vulkan, Self::Hip, Self::Metal];

    /// Returns the name in manifests: `local`, `cuda`, `vulkan`, `hip` or `metal`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
            Self::Hip => "hip",
            Self::Metal => "metal",
        }
    }

    /// Returns whether the runtime has the driver. Otherwise see [`NEVER_RUN`].
    #[must_use]
    pub const fn is_run(self) -> bool {
        match self {
            Self::Local | Self::Cuda | Self::Vulkan => true,
            Self::Hip | Self::Metal => false,
        }
    }

    /// Returns why no target of this driver runs anywhere, or `None` if the runtime has the driver.
    #[must_use]
    pub fn objection(self) -> Option<String> {
        (!self.is_run()).then(|| format!("{NEVER_RUN}: the runtime has no driver {self}"))
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a text that is not a driver's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown driver `{}`, expected local, cuda, vulkan, hip or metal", .0.escape_default())]
pub struct ParseDriverError(String);

impl FromStr for Driver {
    type Err = ParseDriverError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| ParseDriverError(text.into()))
    }
}

impl TryFrom<String> for Driver {
    type Error = ParseDriverError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Driver> for String {
    fn from(driver: Driver) -> Self {
        driver.name().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_names_round_trip() {
        for driver in Driver::ALL {
            assert_eq!(driver.to_string().parse(), Ok(driver));
        }
        assert_eq!(
            "rocm".parse::<Driver>().unwrap_err().to_string(),
            "unknown driver `rocm`, expected local, cuda, vulkan, hip or metal"
        );
    }
}
