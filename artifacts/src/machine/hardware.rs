//! Descriptions of machines and GPUs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{driver::Driver, version::Version};

/// A machine, described for choosing targets. `mlxcel-bundle machine` writes it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The CPU's architecture: `x86_64` or `aarch64`.
    pub arch: String,
    /// The CPU's features by LLVM's names, such as `avx2`.
    pub cpu_features: BTreeSet<String>,
    /// The size of its memory, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Its GPUs, in the order in which their drivers list them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// Its Vulkan drivers, if nobody asked them for devices. They may have some or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vulkan_drivers: Vec<String>,
}

/// A GPU, described for choosing targets. An unknown property never rules out a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// The driver that runs it: CUDA or Vulkan.
    pub driver: Driver,
    /// The name that its driver gives it.
    pub name: String,
    /// The compute capability of an NVIDIA GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<Version>,
    /// The newest CUDA version that its driver supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<Version>,
    /// The size of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The size of its unused memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

impl Gpu {
    /// Describes a GPU of which only the name is known.
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
    fn gpus_and_drivers_are_optional() {
        let machine: Machine =
            serde_json::from_str(r#"{"arch": "x86_64", "cpu_features": ["avx2"]}"#).unwrap();
        assert_eq!((machine.gpus.len(), machine.vulkan_drivers.len()), (0, 0));
        let found = Machine { vulkan_drivers: vec!["lvp_icd.x86_64".into()], ..machine };
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), found);
    }
}
