//! Where targets run on a machine, and which place is taken before which.
//!
//! The runtime and `mlxcel-bundle check` both go by [`DeviceClass`]. The one asks drivers for their devices, and only those
//! that it needs; the other has a [`Machine`].

use std::fmt;

use super::hardware::{Gpu, Machine};
use crate::driver::Driver;

/// Where a target may run.
#[derive(Debug, Clone, Copy)]
pub enum Place<'g> {
    /// On the CPU.
    Cpu,
    /// On this GPU.
    Gpu(&'g Gpu),
    /// On a device of these Vulkan drivers, if they have one.
    VulkanDrivers(&'g [String]),
}

/// Which places are taken before which, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceClass {
    /// An NVIDIA GPU by CUDA.
    Cuda,
    /// A GPU by Vulkan.
    Vulkan,
    /// The CPU.
    Cpu,
    /// A Vulkan device that is the CPU: the CPU's own targets are faster.
    Software,
    /// A device that may be there or not.
    Possible,
}

impl DeviceClass {
    /// Every one, the best first.
    pub const ALL: [Self; 5] = [Self::Cuda, Self::Vulkan, Self::Cpu, Self::Software, Self::Possible];

    /// The driver that has such places.
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
    /// The driver that runs what is there.
    #[must_use]
    pub fn driver(self) -> Driver {
        self.preference().driver()
    }

    /// Whether it is taken before others.
    #[must_use]
    pub fn preference(self) -> DeviceClass {
        match self {
            Self::Cpu => DeviceClass::Cpu,
            Self::VulkanDrivers(_) => DeviceClass::Possible,
            Self::Gpu(gpu) => match gpu.driver {
                Driver::Local => DeviceClass::Cpu,
                Driver::Cuda => DeviceClass::Cuda,
                Driver::Vulkan if is_software(&gpu.name) => DeviceClass::Software,
                Driver::Vulkan => DeviceClass::Vulkan,
            },
        }
    }
}

impl Machine {
    /// Its places, the best first; of equals as the driver has them.
    #[must_use]
    pub fn places(&self) -> Vec<Place<'_>> {
        // A file that describes a machine may call anything a GPU, but what runs on the CPU has to fit the CPU.
        let gpus = self.gpus.iter().filter(|gpu| gpu.driver != Driver::Local).map(Place::Gpu);
        let drivers = Some(self.vulkan_drivers.as_slice()).filter(|drivers| !drivers.is_empty());
        let mut places: Vec<_> = gpus.chain([Place::Cpu]).chain(drivers.map(Place::VulkanDrivers)).collect();
        places.sort_by_key(|place| place.preference());
        places
    }
}

/// Whether a Vulkan device of this name is the CPU: Mesa's lavapipe, SwiftShader, WARP.
fn is_software(name: &str) -> bool {
    ["llvmpipe", "SwiftShader", "Microsoft Basic Render Driver"].iter().any(|known| name.contains(known))
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
    fn preferences_are_in_order() {
        assert!(DeviceClass::ALL.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn places_are_in_the_order_of_preference() {
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
