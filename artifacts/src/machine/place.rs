//! The places of a machine where targets run, and their order of preference.
//!
//! The runtime and `mlxcel-bundle check` share the order of [`DeviceClass`]. The runtime asks drivers for their devices, but
//! only as many drivers as it needs. `check` has a [`Machine`].

use std::fmt;

use super::hardware::{Gpu, Machine};
use crate::driver::Driver;

/// A place of a machine where a target may run.
#[derive(Debug, Clone, Copy)]
pub enum Place<'g> {
    /// The CPU.
    Cpu,
    /// A GPU.
    Gpu(&'g Gpu),
    /// A device of one of these Vulkan drivers, if they have one.
    VulkanDrivers(&'g [String]),
}

/// Classes of devices, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceClass {
    /// An NVIDIA GPU through CUDA.
    Cuda,
    /// A GPU through Vulkan.
    Vulkan,
    /// The CPU.
    Cpu,
    /// A Vulkan device in software. Targets for the CPU are faster.
    Software,
    /// A device that may not exist, or that the runtime has no driver for.
    Possible,
}

impl DeviceClass {
    /// Every class, best first.
    pub const ALL: [Self; 5] = [Self::Cuda, Self::Vulkan, Self::Cpu, Self::Software, Self::Possible];

    /// Returns the driver of such devices.
    #[must_use]
    pub const fn driver(self) -> Driver {
        match self {
            Self::Cuda => Driver::Cuda,
            Self::Cpu => Driver::Local,
            Self::Vulkan | Self::Software | Self::Possible => Driver::Vulkan,
        }
    }
}

impl Place<'_> {
    /// Returns the driver of the place.
    #[must_use]
    pub fn driver(self) -> Driver {
        match self {
            Self::Cpu => Driver::Local,
            Self::Gpu(gpu) => gpu.driver,
            Self::VulkanDrivers(_) => Driver::Vulkan,
        }
    }

    /// Returns the class that decides how much the place is preferred.
    #[must_use]
    pub fn device_class(self) -> DeviceClass {
        match self {
            Self::Cpu => DeviceClass::Cpu,
            Self::VulkanDrivers(_) => DeviceClass::Possible,
            Self::Gpu(gpu) => match gpu.driver {
                Driver::Local => DeviceClass::Cpu,
                Driver::Cuda => DeviceClass::Cuda,
                Driver::Vulkan if is_software(&gpu.name) => DeviceClass::Software,
                Driver::Vulkan => DeviceClass::Vulkan,
                Driver::Hip | Driver::Metal => DeviceClass::Possible,
            },
        }
    }
}

impl Machine {
    /// Lists the machine's places, best first. Places of one class keep the order of their driver.
    #[must_use]
    pub fn places(&self) -> Vec<Place<'_>> {
        // A description may list a GPU with the CPU's driver, but only `Place::Cpu` checks CPU features.
        let is_place = |gpu: &&Gpu| gpu.driver != Driver::Local && gpu.driver.is_run();
        let gpus = self.gpus.iter().filter(is_place).map(Place::Gpu);
        let drivers = Some(self.vulkan_drivers.as_slice()).filter(|drivers| !drivers.is_empty());
        let mut places: Vec<_> = gpus.chain([Place::Cpu]).chain(drivers.map(Place::VulkanDrivers)).collect();
        places.sort_by_key(|place| place.device_class());
        places
    }
}

/// Returns whether a Vulkan device of this name runs in software: lavapipe, SwiftShader or WARP.
fn is_software(name: &str) -> bool {
    ["llvmpipe", "SwiftShader", "Microsoft Basic Render Driver"]
        .iter()
        .any(|software| name.contains(software))
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.pad("cpu"),
            Self::Gpu(gpu) => f.pad(&gpu.name),
            Self::VulkanDrivers(_) => f.pad("a vulkan device, if there is one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_classes_are_in_order() {
        assert!(DeviceClass::ALL.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn places_are_in_order_of_preference() {
        let gpus = [
            (Driver::Local, "no GPU"),
            (Driver::Vulkan, "llvmpipe (LLVM 15.0.6, 256 bits)"),
            (Driver::Vulkan, "Microsoft Direct3D12 (Microsoft Basic Render Driver)"),
            (Driver::Vulkan, "RADV NAVI31"),
            (Driver::Vulkan, "Intel Arc"),
            (Driver::Cuda, "RTX 3090"),
            (Driver::Cuda, "RTX 3060"),
        ];
        let machine = Machine {
            arch: "x86_64".into(),
            cpu_features: [].into(),
            memory_bytes: None,
            gpus: gpus.map(|(driver, name)| Gpu::named(driver, name)).into(),
            vulkan_drivers: vec!["radeon_icd".into(), "lvp_icd".into()],
        };
        let names = |machine: &Machine| machine.places().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            names(&machine),
            [
                "RTX 3090",
                "RTX 3060",
                "RADV NAVI31",
                "Intel Arc",
                "cpu",
                "llvmpipe (LLVM 15.0.6, 256 bits)",
                "Microsoft Direct3D12 (Microsoft Basic Render Driver)",
                "a vulkan device, if there is one",
            ]
        );
        assert_eq!(names(&Machine { gpus: vec![], vulkan_drivers: vec![], ..machine }), ["cpu"]);
    }
}
