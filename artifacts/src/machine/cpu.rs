//! The features of the host's CPU.

/// Lists the features that the host's CPU has: `detected!(macro; "LLVM's name" = "Rust's name", …)`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! detected {
    ($check:ident; $($llvm:literal = $rust:tt),* $(,)?) => {{
        let mut features: Vec<&'static str> = Vec::new();
        $(if std::arch::$check!($rust) { features.push($llvm); })*
        features
    }};
}

/// Returns the features of the host's CPU by LLVM's names.
#[cfg(target_arch = "x86_64")]
pub(super) fn host_features() -> Vec<&'static str> {
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
    // std cannot detect these. Every x86-64 CPU has the first six, every one with SSE 4.2 the others.
    features.extend(["64bit", "cmov", "cx8", "mmx", "nopl", "x87"]);
    if features.contains(&"sse4.2") {
        features.extend(["crc32", "sahf"]);
    }
    // Detecting AMX with std is unstable.
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

/// Returns the features of the host's CPU by LLVM's names.
#[cfg(target_arch = "aarch64")]
pub(super) fn host_features() -> Vec<&'static str> {
    detected!(is_aarch64_feature_detected;
        "aes" = "aes", "bf16" = "bf16", "bti" = "bti", "ccdp" = "dpb2", "ccpp" = "dpb", "complxnum" = "fcma",
        "crc" = "crc", "dit" = "dit", "dotprod" = "dotprod", "f32mm" = "f32mm", "f64mm" = "f64mm",
        "flagm" = "flagm", "fp-armv8" = "fp", "fp16fml" = "fhm", "fptoint" = "frintts", "fullfp16" = "fp16",
        "i8mm" = "i8mm", "jsconv" = "jsconv", "lse" = "lse", "lse2" = "lse2", "neon" = "neon",
        "pauth" = "paca", "rand" = "rand", "rcpc" = "rcpc", "rcpc-immo" = "rcpc2", "rdm" = "rdm", "sb" = "sb",
        "sha2" = "sha2", "sha3" = "sha3", "sm4" = "sm4", "ssbs" = "ssbs", "sve" = "sve", "sve2" = "sve2",
    )
}

/// Returns no features: detection does not cover this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn host_features() -> Vec<&'static str> {
    Vec::new()
}
