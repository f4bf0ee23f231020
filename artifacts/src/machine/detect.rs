//! Detection of the host: CPU, memory, GPUs and drivers. Initializes no driver.

use std::{env, ffi::OsStr, fs, path::Path};

use nvml_wrapper::{Nvml, error::NvmlError};

use super::{
    cpu::host_features,
    hardware::{Gpu, Machine},
};
use crate::{driver::Driver, version::Version};

/// The folders in which Vulkan's loader finds drivers on Linux.
const VULKAN_DRIVERS: [&str; 4] = [
    "/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
];

impl Machine {
    /// Detects the host's CPU and memory, without its GPUs.
    #[must_use]
    pub fn host() -> Self {
        Self {
            arch: std::env::consts::ARCH.into(),
            cpu_features: host_features().into_iter().map(Into::into).collect(),
            memory_bytes: host_memory(),
            gpus: Vec::new(),
            vulkan_drivers: Vec::new(),
        }
    }

    /// Detects the host's CPU, memory, NVIDIA GPUs (by NVML) and installed Vulkan drivers.
    ///
    /// `driver_files` is the value of `VK_DRIVER_FILES`: if it is set, Vulkan's loader finds these drivers only.
    #[must_use]
    pub fn host_with_gpus(driver_files: Option<&OsStr>) -> Self {
        Self {
            gpus: nvidia_gpus().unwrap_or_default(),
            vulkan_drivers: vulkan_drivers(driver_files),
            ..Self::host()
        }
    }
}

/// Returns the unused memory of NVIDIA GPUs in bytes, by NVML; `None` for those that it does not know.
///
/// `uuids` are as `nvidia-smi -L` prints them.
#[must_use]
pub fn nvidia_free_bytes(uuids: &[&str]) -> Vec<Option<u64>> {
    let nvml = Nvml::init().ok();
    let free = |uuid: &&str| Some(nvml.as_ref()?.device_by_uuid(*uuid).ok()?.memory_info().ok()?.free);
    uuids.iter().map(free).collect()
}

/// Lists the NVIDIA GPUs. Their order may differ from CUDA's.
fn nvidia_gpus() -> Result<Vec<Gpu>, NvmlError> {
    let nvml = Nvml::init()?;
    // NVML returns 12040 for version 12.4.
    let cuda = nvml.sys_cuda_driver_version().ok().and_then(|version| {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        Some(Version(major.try_into().ok()?, minor.try_into().ok()?))
    });
    let mut gpus = Vec::new();
    for index in 0..nvml.device_count()? {
        let device = nvml.device_by_index(index)?;
        let capability = device.cuda_compute_capability().ok();
        let compute_capability = capability
            .and_then(|found| Some(Version(found.major.try_into().ok()?, found.minor.try_into().ok()?)));
        let memory = device.memory_info().ok();
        gpus.push(Gpu {
            driver: Driver::Cuda,
            name: device.name()?,
            compute_capability,
            cuda,
            memory_bytes: memory.as_ref().map(|memory| memory.total),
            free_bytes: memory.as_ref().map(|memory| memory.free),
        });
    }
    Ok(gpus)
}

/// Lists the drivers that Vulkan's loader would find. Only the drivers know their devices.
fn vulkan_drivers(files: Option<&OsStr>) -> Vec<String> {
    let driver_name = |path: &Path| Some(path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned());
    if let Some(files) = files {
        return env::split_paths(files)
            .filter(|path| path.is_file())
            .filter_map(|path| driver_name(&path))
            .collect();
    }
    let entries = VULKAN_DRIVERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| driver_name(&entry.path())).collect();
    names.sort();
    names
}

/// Returns the size of the memory, from Linux.
fn host_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detected_features_match_the_kernels() {
        let machine = Machine::host();
        assert_eq!(machine.arch, std::env::consts::ARCH);
        let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        // The names in /proc/cpuinfo and in LLVM.
        let x86: &[_] = &[
            ("avx2", "avx2"),
            ("f16c", "f16c"),
            ("bmi1", "bmi"),
            ("avx512_vnni", "avx512vnni"),
            ("amx_int8", "amx-int8"),
            ("amx_bf16", "amx-bf16"),
        ];
        let arm: &[_] =
            &[("asimd", "neon"), ("asimddp", "dotprod"), ("i8mm", "i8mm"), ("asimdhp", "fullfp16")];
        let Some(line) = cpuinfo.lines().find(|l| l.starts_with("flags") || l.starts_with("Features")) else {
            return;
        };
        for (kernel, llvm) in if machine.arch == "x86_64" { x86 } else { arm } {
            let expected = line.split_whitespace().any(|word| word == *kernel);
            assert_eq!(machine.cpu_features.contains(*llvm), expected, "{llvm}");
        }
    }
}
