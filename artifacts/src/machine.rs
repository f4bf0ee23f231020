//! Which target of a bundle runs on a machine.
//!
//! A vmfb for the CPU is native code: on a CPU that lacks a feature it uses, it dies of an illegal instruction. So the
//! manifest says what a target needs, [`Machine::this`] says what there is, and [`choose`] compares.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    IREE_VERSION,
    error::Error,
    manifest::{Manifest, TargetArtifact},
};

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

/// What matters of a machine when a CPU target is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The CPU's architecture: `x86_64` or `aarch64`.
    pub arch: String,
    /// The CPU's features by LLVM's names: `avx2`, `fma`, `f16c`, `avx512f`, …
    pub cpu_features: BTreeSet<String>,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        Self {
            arch: std::env::consts::ARCH.into(),
            cpu_features: this_cpu().into_iter().map(Into::into).collect(),
        }
    }

    /// Why `target` does not run here with one of `drivers`; `None` when it does.
    fn objection(&self, target: &TargetArtifact, drivers: &[Driver]) -> Option<String> {
        if !drivers.contains(&target.driver) {
            return Some(format!("needs the driver {}", target.driver));
        }
        if target.driver != Driver::Local {
            return None;
        }
        if target.arch != self.arch {
            return Some(format!("compiled for {}, this cpu is {}", target.arch, self.arch));
        }
        let missing = target.cpu_features.iter().filter(|&f| !self.cpu_features.contains(f));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        (!missing.is_empty()).then(|| {
            format!("this cpu lacks {} (needed: {})", missing.join(", "), target.cpu_features.join(", "))
        })
    }
}

/// The target to run on `machine`: of the first of `drivers` for which one fits, the one that uses the most CPU features.
///
/// # Errors
/// When the bundle was compiled by another IREE than [`IREE_VERSION`], or when no target fits; the error says of every
/// target why not.
pub fn choose<'m>(
    manifest: &'m Manifest,
    machine: &Machine,
    drivers: &[Driver],
) -> Result<(&'m str, &'m TargetArtifact), Error> {
    if manifest.compiler.version != IREE_VERSION {
        return Err(Error::OtherIree { found: manifest.compiler.version.clone(), expected: IREE_VERSION });
    }
    let mut best: Option<(usize, &str, &TargetArtifact)> = None;
    let mut reasons = Vec::new();
    for (name, target) in &manifest.targets {
        if let Some(reason) = machine.objection(target, drivers) {
            reasons.push((name.clone(), reason));
            continue;
        }
        // Smaller is better; on a tie the first by name stays, so that the choice does not depend on chance.
        let rank = drivers.iter().position(|&d| d == target.driver).unwrap_or(usize::MAX);
        if best
            .is_none_or(|(r, _, b)| rank < r || rank == r && target.cpu_features.len() > b.cpu_features.len())
        {
            best = Some((rank, name, target));
        }
    }
    match best {
        Some((_, name, target)) => Ok((name, target)),
        None => Err(Error::NoTarget { arch: machine.arch.clone(), drivers: drivers.to_vec(), reasons }),
    }
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
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Blob, Digest, manifest::tests::manifest};

    fn target(driver: Driver, arch: &str, features: &[&str]) -> TargetArtifact {
        TargetArtifact {
            driver,
            arch: arch.into(),
            cpu_features: features.iter().map(ToString::to_string).collect(),
            flags: vec![],
            build_key: Digest::of(b"key"),
            vmfb: Blob { digest: Digest::of(b"vmfb"), size: 4 },
            entries: vec![],
            step_bytes: 32,
            rewind: None,
            dispatches: BTreeMap::new(),
            packing: None,
        }
    }

    fn with(targets: &[(&str, TargetArtifact)]) -> Manifest {
        let targets = targets.iter().map(|(n, t)| ((*n).to_string(), t.clone())).collect();
        Manifest { targets, ..manifest() }
    }

    fn machine(features: &[&str]) -> Machine {
        Machine { arch: "x86_64".into(), cpu_features: features.iter().map(ToString::to_string).collect() }
    }

    fn cpus() -> Manifest {
        with(&[
            ("cpu-aarch64", target(Driver::Local, "aarch64", &["neon"])),
            ("cpu-x86-64-v3", target(Driver::Local, "x86_64", &["avx2", "fma"])),
            ("cpu-x86-64-v4", target(Driver::Local, "x86_64", &["avx2", "fma", "avx512f", "avx512bw"])),
            ("cuda", target(Driver::Cuda, "", &[])),
            ("cuda-sm_121", target(Driver::Cuda, "", &[])),
        ])
    }

    fn name(manifest: &Manifest, machine: &Machine, drivers: &[Driver]) -> String {
        choose(manifest, machine, drivers).unwrap().0.to_string()
    }

    #[test]
    fn the_most_features_that_fit_win() {
        let m = cpus();
        assert_eq!(name(&m, &machine(&["avx2", "fma", "f16c"]), &[Driver::Local]), "cpu-x86-64-v3");
        let wide = machine(&["avx2", "fma", "avx512f", "avx512bw"]);
        assert_eq!(name(&m, &wide, &[Driver::Local]), "cpu-x86-64-v4");
    }

    #[test]
    fn drivers_are_tried_in_order_and_ties_go_by_name() {
        let (m, here) = (cpus(), machine(&["avx2", "fma"]));
        assert_eq!(name(&m, &here, &[Driver::Cuda, Driver::Local]), "cuda");
        assert_eq!(name(&m, &here, &[Driver::Local, Driver::Cuda]), "cpu-x86-64-v3");
        assert_eq!(name(&m, &here, &[Driver::Vulkan, Driver::Local]), "cpu-x86-64-v3");
    }

    #[test]
    fn the_error_says_of_every_target_why_not() {
        let error = choose(&cpus(), &machine(&["avx2"]), &[Driver::Local, Driver::Vulkan]).unwrap_err();
        insta::assert_snapshot!(error, @r"
        no target of this bundle runs here (x86_64 cpu; drivers: local, vulkan)
          cpu-aarch64: compiled for aarch64, this cpu is x86_64
          cpu-x86-64-v3: this cpu lacks fma (needed: avx2, fma)
          cpu-x86-64-v4: this cpu lacks fma, avx512f, avx512bw (needed: avx2, fma, avx512f, avx512bw)
          cuda: needs the driver cuda
          cuda-sm_121: needs the driver cuda
        hint: compile the bundle for this machine, e.g. with --target cpu
        ");
        let error = choose(&cpus(), &machine(&[]), &[]).unwrap_err().to_string();
        assert!(error.contains("(x86_64 cpu; drivers: none)"), "{error}");
    }

    #[test]
    fn another_iree_is_refused() {
        let mut m = cpus();
        m.compiler.version = "3.12.0".into();
        assert_eq!(
            choose(&m, &machine(&["avx2", "fma"]), &[Driver::Local]).unwrap_err().to_string(),
            "bundle was compiled by iree 3.12.0, this program runs iree 3.13.0\n\
             hint: compile the bundle again with this version"
        );
    }

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
