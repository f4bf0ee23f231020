//! The table of CPU features: LLVM's names, how each is detected, and the levels that group them.
//!
//! Targets and instruction sets of kernels name levels and features, which [`cpu_features`] looks up here. It returns only
//! features that a machine can be found to have.

use std::collections::BTreeSet;

use crate::nearest::{SUGGESTIONS, nearest};

/// A CPU level: features that a generation of CPUs has in common.
struct Level {
    /// Clang's name, as in `-march=x86-64-v3`.
    name: &'static str,
    arch: &'static str,
    /// Groups of features by LLVM's names.
    groups: &'static [&'static [&'static str]],
}

const V2: &[&str] = &["popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"];
const V3: &[&str] = &["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"];
const V4: &[&str] = &["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"];

/// The levels. `cx16` and `sahf` are left out, because they do not help numeric code.
const LEVELS: &[Level] = &[
    Level { name: "x86-64-v2", arch: "x86_64", groups: &[V2] },
    Level { name: "x86-64-v3", arch: "x86_64", groups: &[V2, V3] },
    Level { name: "x86-64-v4", arch: "x86_64", groups: &[V2, V3, V4] },
    Level { name: "armv8.2-a", arch: "aarch64", groups: &[&["neon"]] },
];

/// Lists features by LLVM's names beside std's, and defines the function that detects them on their architecture.
macro_rules! std_features {
    ($list:ident, $arch:literal, $is_detected:ident; $($llvm:literal = $std:tt),* $(,)?) => {
        const $list: &[&str] = &[$($llvm),*];

        #[cfg(target_arch = $arch)]
        fn detected_by_std() -> Vec<&'static str> {
            let mut features = Vec::new();
            $(if std::arch::$is_detected!($std) { features.push($llvm); })*
            features
        }
    };
}

std_features! { X86_64_STD, "x86_64", is_x86_feature_detected;
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
}

std_features! { AARCH64_STD, "aarch64", is_aarch64_feature_detected;
    "aes" = "aes", "bf16" = "bf16", "bti" = "bti", "ccdp" = "dpb2", "ccpp" = "dpb", "complxnum" = "fcma",
    "crc" = "crc", "dit" = "dit", "dotprod" = "dotprod", "f32mm" = "f32mm", "f64mm" = "f64mm",
    "flagm" = "flagm", "fp-armv8" = "fp", "fp16fml" = "fhm", "fptoint" = "frintts", "fullfp16" = "fp16",
    "i8mm" = "i8mm", "jsconv" = "jsconv", "lse" = "lse", "lse2" = "lse2", "neon" = "neon",
    "pauth" = "paca", "rand" = "rand", "rcpc" = "rcpc", "rcpc-immo" = "rcpc2", "rdm" = "rdm", "sb" = "sb",
    "sha2" = "sha2", "sha3" = "sha3", "sm4" = "sm4", "ssbs" = "ssbs", "sve" = "sve", "sve2" = "sve2",
}

/// Features of every x86-64 CPU, which std does not detect.
const X86_64_BASELINE: &[&str] = &["64bit", "cmov", "cx8", "mmx", "nopl", "x87"];

/// Features of every x86-64 CPU with SSE 4.2, which std does not detect.
const X86_64_WITH_SSE42: &[&str] = &["crc32", "sahf"];

/// Features of AMX. std's detection of them is not stable.
const X86_64_AMX: &[&str] = &["amx-bf16", "amx-int8", "amx-tile"];

/// Returns the features of the host's CPU by LLVM's names.
#[cfg(target_arch = "x86_64")]
pub(super) fn host_features() -> Vec<&'static str> {
    let mut features = detected_by_std();
    features.extend(X86_64_BASELINE);
    if features.contains(&"sse4.2") {
        features.extend(X86_64_WITH_SSE42);
    }
    if let Some(found) = raw_cpuid::CpuId::new().get_extended_feature_info() {
        let has = [found.has_amx_bf16(), found.has_amx_int8(), found.has_amx_tile()];
        features.extend(X86_64_AMX.iter().zip(has).filter_map(|(name, has)| has.then_some(name)));
    }
    features
}

/// Returns the features of the host's CPU by LLVM's names.
#[cfg(target_arch = "aarch64")]
pub(super) fn host_features() -> Vec<&'static str> {
    detected_by_std()
}

/// Returns the features of the host's CPU by LLVM's names.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn host_features() -> Vec<&'static str> {
    Vec::new()
}

/// A name that is no CPU level and no feature of the architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "found the CPU feature `{}`, expected a level or LLVM's name of a feature of {arch}\n\
     hint: {}artifacts/src/machine/cpu.rs lists the features",
    name.escape_default(), did_you_mean(nearest)
)]
pub struct UnknownCpuFeature {
    name: String,
    arch: String,
    /// The levels and features with the most similar names.
    nearest: Vec<&'static str>,
}

impl UnknownCpuFeature {
    fn new(arch: &str, name: &str) -> Self {
        let levels = LEVELS.iter().filter(|level| level.arch == arch).map(|level| level.name);
        let known = levels.chain(detectable(arch).iter().copied().flatten().copied());
        Self { name: name.into(), arch: arch.into(), nearest: nearest(name, known, SUGGESTIONS) }
    }
}

fn did_you_mean(nearest: &[&str]) -> String {
    if nearest.is_empty() { String::new() } else { format!("did you mean {}? ", nearest.join(", ")) }
}

/// Returns LLVM's names of the CPU features that these names stand for: a level stands for several, a feature for itself.
///
/// # Errors
/// A name is neither a level nor a feature that can be detected on the architecture.
pub fn cpu_features<'a>(
    arch: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeSet<&'a str>, UnknownCpuFeature> {
    let mut features = BTreeSet::new();
    for name in names {
        match LEVELS.iter().find(|level| level.name == name && level.arch == arch) {
            Some(level) => features.extend(level.groups.iter().copied().flatten()),
            None if is_detectable(arch, name) => _ = features.insert(name),
            None => return Err(UnknownCpuFeature::new(arch, name)),
        }
    }
    Ok(features)
}

/// Returns whether machines of the architecture can be found to have the feature.
fn is_detectable(arch: &str, name: &str) -> bool {
    detectable(arch).iter().any(|list| list.contains(&name))
}

/// Returns lists of the features that machines of the architecture can be found to have.
fn detectable(arch: &str) -> &'static [&'static [&'static str]] {
    match arch {
        "x86_64" => &[X86_64_STD, X86_64_BASELINE, X86_64_WITH_SSE42, X86_64_AMX],
        "aarch64" => &[AARCH64_STD],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_consist_of_detectable_features() {
        for level in LEVELS {
            for feature in level.groups.iter().copied().flatten() {
                assert!(is_detectable(level.arch, feature), "{}: {feature}", level.name);
            }
        }
    }

    #[test]
    fn detected_features_are_in_the_table() {
        for feature in host_features() {
            assert!(is_detectable(std::env::consts::ARCH, feature), "{feature}");
        }
    }

    #[test]
    fn levels_and_features_are_looked_up_by_architecture() {
        let found = cpu_features("x86_64", ["x86-64-v2", "avx512vnni", "sse3"]).unwrap();
        let expected = ["avx512vnni", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(cpu_features("riscv64", []), Ok(BTreeSet::new()));
        // Only the nearest name is compared: which follow depends on the features that there are.
        for (arch, name, hint) in [
            ("aarch64", "dot-prod", "did you mean dotprod, "),
            ("aarch64", "x86-64-v2", "did you mean "),
            ("x86_64", "avx512_bf16", "did you mean avx512bf16, "),
            ("x86_64", "x86-64-v44", "did you mean x86-64-v4, "),
            ("", "neon", "artifacts/src/machine/cpu.rs "),
        ] {
            let message = cpu_features(arch, [name]).unwrap_err().to_string();
            let expected = format!("expected a level or LLVM's name of a feature of {arch}\nhint: {hint}");
            let start = format!("found the CPU feature `{name}`, {expected}");
            assert!(message.starts_with(&start), "{message}");
            assert!(message.ends_with("artifacts/src/machine/cpu.rs lists the features"), "{message}");
        }
    }
}
