//! What a machine has to run bundles with.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{driver::Driver, version::Version};

/// What matters of a machine when a target is chosen. As JSON it can be given to somebody who compiles for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The CPU's architecture: `x86_64` or `aarch64`.
    pub arch: String,
    /// The CPU's features by LLVM's names: `avx2`, `fma`, `f16c`, `avx512f`, …
    pub cpu_features: BTreeSet<String>,
    /// Bytes of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Its GPUs, in the drivers' order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// Its Vulkan drivers, where they were not asked for devices: they may have some or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vulkan_drivers: Vec<String>,
}

/// What matters of a GPU. What is not known is no reason to refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// The driver: CUDA or Vulkan.
    pub driver: Driver,
    /// What the driver calls it.
    pub name: String,
    /// Of an NVIDIA GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<Version>,
    /// The newest CUDA that its driver runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<Version>,
    /// Bytes of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of that which nobody uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

impl Gpu {
    /// One of which nothing is known but its name.
    #[must_use]
    pub fn named(driver: Driver, name: impl Into<String>) -> Self {
        let (compute_capability, cuda, memory_bytes, free_bytes) = (None, None, None, None);
        Self { driver, name: name.into(), compute_capability, cuda, memory_bytes, free_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_gpus_and_drivers_is_one() {
        let machine: Machine =
            serde_json::from_str(r#"{"arch": "x86_64", "cpu_features": ["avx2"]}"#).unwrap();
        assert_eq!((machine.gpus.len(), machine.vulkan_drivers.len()), (0, 0));
        let found = Machine { vulkan_drivers: vec!["lvp_icd.x86_64".into()], ..machine };
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), found);
    }
}
