//! What a machine has to run bundles with.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A kind of device, by the IREE HAL driver that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Driver {
    /// The CPU: local-task or local-sync.
    Local,
    /// An NVIDIA GPU.
    Cuda,
    /// A Vulkan device.
    Vulkan,
}

impl Driver {
    /// Every driver.
    pub const ALL: [Self; 3] = [Self::Local, Self::Cuda, Self::Vulkan];

    /// Its name in the manifest: `local`, `cuda` or `vulkan`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown driver `{}`, expected local, cuda or vulkan", .0.escape_default())]
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

/// A version of two numbers, written `8.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.0, self.1))
    }
}

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let parts =
            text.split_once('.').and_then(|(major, minor)| Some(Self(number(major)?, number(minor)?)));
        // One version has one text.
        parts.filter(|version| version.to_string() == text).ok_or_else(|| ParseVersionError(text.into()))
    }
}

impl TryFrom<String> for Version {
    type Error = ParseVersionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no version, expected two numbers as in `8.0`", .0.escape_default())]
pub struct ParseVersionError(String);

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

impl Machine {
    /// This machine's CPU and memory. Its GPUs are for those to say who can ask their drivers.
    #[must_use]
    pub fn this() -> Self {
        Self {
            arch: std::env::consts::ARCH.into(),
            cpu_features: this_cpu().into_iter().map(Into::into).collect(),
            memory_bytes: this_memory(),
            gpus: Vec::new(),
            vulkan_drivers: Vec::new(),
        }
    }
}

/// Bytes of all memory, as Linux says.
fn this_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

/// `detected!(macro; "LLVM's name" = "Rust's name", …)`: LLVM's names of the features that this CPU has.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! detected {
    ($check:ident; $($llvm:literal = $rust:tt),* $(,)?) => {{
        let mut features: Vec<&'static str> = Vec::new();
        $(if std::arch::$check!($rust) { features.push($llvm); })*
        features
    }};
}

#[cfg(target_arch = "x86_64")]
fn this_cpu() -> Vec<&'static str> {
    let mut features = detected!(is_x86_feature_detected;
        "adx" = "adx", "aes" = "aes", "avx" = "avx", "avx2" = "avx2",
        "avx512bf16" = "avx512bf16", "avx512bitalg" = "avx512bitalg", "avx512bw" = "avx512bw",
        "avx512cd" = "avx512cd", "avx512dq" = "avx512dq", "avx512f" = "avx512f", "avx512fp16" = "avx512fp16",
        "avx512ifma" = "avx512ifma", "avx512vbmi" = "avx512vbmi", "avx512vbmi2" = "avx512vbmi2",
        "avx512vl" = "avx512vl", "avx512vnni" = "avx512vnni", "avx512vp2intersect" = "avx512vp2intersect",
        "avx512vpopcntdq" = "avx512vpopcntdq",
        "avxifma" = "avxifma", "avxneconvert" = "avxneconvert", "avxvnni" = "avxvnni",
        "avxvnniint16" = "avxvnniint16", "avxvnniint8" = "avxvnniint8",
        "bmi" = "bmi1", "bmi2" = "bmi2", "cx16" = "cmpxchg16b", "f16c" = "f16c", "fma" = "fma", "fxsr" = "fxsr",
        "gfni" = "gfni", "lzcnt" = "lzcnt", "movbe" = "movbe", "pclmul" = "pclmulqdq", "popcnt" = "popcnt",
        "rdrnd" = "rdrand", "rdseed" = "rdseed", "sha" = "sha",
        "sse" = "sse", "sse2" = "sse2", "sse3" = "sse3", "sse4.1" = "sse4.1", "sse4.2" = "sse4.2",
        "sse4a" = "sse4a", "ssse3" = "ssse3", "tbm" = "tbm", "vaes" = "vaes", "vpclmulqdq" = "vpclmulqdq",
        "xsave" = "xsave", "xsavec" = "xsavec", "xsaveopt" = "xsaveopt", "xsaves" = "xsaves",
    );
    // Part of every x86-64 CPU, or of every one with SSE 4.2; std has no test for them.
    features.extend(["64bit", "cmov", "cx8", "mmx", "nopl", "x87"]);
    if features.contains(&"sse4.2") {
        features.extend(["crc32", "sahf"]);
    }
    // std's test for AMX is not stable.
    if let Some(found) = raw_cpuid::CpuId::new().get_extended_feature_info() {
        let amx = [
            ("amx-bf16", found.has_amx_bf16()),
            ("amx-int8", found.has_amx_int8()),
            ("amx-tile", found.has_amx_tile()),
        ];
        features.extend(amx.into_iter().filter(|(_, has)| *has).map(|(name, _)| name));
    }
    features
}

#[cfg(target_arch = "aarch64")]
fn this_cpu() -> Vec<&'static str> {
    detected!(is_aarch64_feature_detected;
        "aes" = "aes", "bf16" = "bf16", "bti" = "bti", "ccdp" = "dpb2", "ccpp" = "dpb", "complxnum" = "fcma",
        "crc" = "crc", "dit" = "dit", "dotprod" = "dotprod", "f32mm" = "f32mm", "f64mm" = "f64mm",
        "flagm" = "flagm", "fp-armv8" = "fp", "fp16fml" = "fhm", "fptoint" = "frintts", "fullfp16" = "fp16",
        "i8mm" = "i8mm", "jsconv" = "jsconv", "lse" = "lse", "lse2" = "lse2", "neon" = "neon",
        "pauth" = "paca", "rand" = "rand", "rcpc" = "rcpc", "rcpc-immo" = "rcpc2", "rdm" = "rdm", "sb" = "sb",
        "sha2" = "sha2", "sha3" = "sha3", "sm4" = "sm4", "ssbs" = "ssbs", "sve" = "sve", "sve2" = "sve2",
    )
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn this_cpu() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_what_the_kernel_says() {
        let machine = Machine::this();
        assert_eq!(machine.arch, std::env::consts::ARCH);
        let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        // (in /proc/cpuinfo, LLVM's name)
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

    #[test]
    fn a_machine_without_gpus_and_drivers_is_one() {
        let machine: Machine =
            serde_json::from_str(r#"{"arch": "x86_64", "cpu_features": ["avx2"]}"#).unwrap();
        assert_eq!((machine.gpus.len(), machine.vulkan_drivers.len()), (0, 0));
        let found = Machine { vulkan_drivers: vec!["lvp_icd.x86_64".into()], ..machine };
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), found);
    }

    #[test]
    fn versions_have_one_text() {
        assert_eq!("8.0".parse(), Ok(Version(8, 0)));
        assert!(Version(8, 9) < Version(12, 0) && Version(7, 9) < Version(7, 10));
        for text in ["", "8", "8.", ".0", "8.0.1", "08.0", "8.00", "+8.0", "8.-1", "4294967296.0"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn driver_names_round_trip() {
        for driver in Driver::ALL {
            assert_eq!(driver.to_string().parse(), Ok(driver));
        }
        assert_eq!(
            "rocm".parse::<Driver>().unwrap_err().to_string(),
            "unknown driver `rocm`, expected local, cuda or vulkan"
        );
    }
}
