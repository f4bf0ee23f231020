//! Instruction sets that kernels are compiled for. The library and `build.rs` share this file.

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// x86-64 with AVX2, FMA and F16C.
    X86_64V3,
    /// x86-64 with AVX-512 and its dot products of bytes.
    X86_64V4Vnni,
    /// x86-64 with AVX-512 and its dot products of bytes and of bf16.
    X86_64V4Bf16,
    /// x86-64 with AVX-512, its dot products, and AMX: products of tiles of bytes and of bf16.
    X86_64V4Amx,
    /// 64-bit ARM with dot products.
    Aarch64,
    /// PTX for NVIDIA GPUs from compute capability 8.0 on.
    Sm80,
    /// PTX for NVIDIA GPUs from compute capability 9.0 on, where a kernel may begin before the one ahead of it has ended.
    Sm90,
}

impl Isa {
    /// Every instruction set. Of those that a CPU supports, the last is the best.
    pub const ALL: [Self; 7] = [
        Self::X86_64V3,
        Self::X86_64V4Vnni,
        Self::X86_64V4Bf16,
        Self::X86_64V4Amx,
        Self::Aarch64,
        Self::Sm80,
        Self::Sm90,
    ];

    /// Returns the name, which is part of the names of objects.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64V3 => "x86_64_v3",
            Self::X86_64V4Vnni => "x86_64_v4_vnni",
            Self::X86_64V4Bf16 => "x86_64_v4_bf16",
            Self::X86_64V4Amx => "x86_64_v4_amx",
            Self::Aarch64 => "aarch64",
            Self::Sm80 => "sm_80",
            Self::Sm90 => "sm_90",
        }
    }

    /// Returns LLVM's name of the architecture.
    #[must_use]
    pub const fn arch(self) -> &'static str {
        match self {
            Self::X86_64V3 | Self::X86_64V4Vnni | Self::X86_64V4Bf16 | Self::X86_64V4Amx => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Sm80 | Self::Sm90 => "nvptx64",
        }
    }

    /// Returns whether it is that of a GPU.
    #[must_use]
    pub const fn is_gpu(self) -> bool {
        matches!(self, Self::Sm80 | Self::Sm90)
    }

    /// Returns the CPU features that its code may use: a level, then features beyond the level. A GPU has none.
    ///
    /// The table of CPU features has these names: `cpu_features` of mlxcel-artifacts looks them up.
    #[must_use]
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::X86_64V3 => &["x86-64-v3"],
            Self::X86_64V4Vnni => &["x86-64-v4", "avx512vnni"],
            Self::X86_64V4Bf16 => &["x86-64-v4", "avx512vnni", "avx512bf16"],
            Self::X86_64V4Amx => {
                &["x86-64-v4", "avx512vnni", "avx512bf16", "avx512vbmi", "amx-tile", "amx-int8", "amx-bf16"]
            }
            Self::Aarch64 => &["armv8.2-a", "fullfp16", "dotprod"],
            Self::Sm80 | Self::Sm90 => &[],
        }
    }

    /// Returns the flags that make clang compile for it.
    #[must_use]
    pub fn clang_flags(self) -> Vec<String> {
        let Some((level, features)) = self.features().split_first() else {
            // The version of PTX that iree-compile 3.13 writes, so that kernels ask for no newer driver. What `build.rs` makes
            // for sm_90 is of the first version that has it.
            let arch = format!("-march={}", Self::Sm80.name());
            let flags = [&arch, "-Xclang", "-target-feature", "-Xclang", "+ptx76"];
            return flags.map(str::to_owned).into();
        };
        if self == Self::Aarch64 {
            // Clang's name for LLVM's `fullfp16` is `fp16`.
            let features = features.iter().map(|feature| feature.strip_prefix("full").unwrap_or(feature));
            return vec![format!("-march={level}+{}", features.collect::<Vec<_>>().join("+"))];
        }
        let features = features.iter().map(|feature| format!("-m{feature}"));
        [format!("-march={level}")].into_iter().chain(features).collect()
    }

    /// Returns the folder in `kernels/` that has its sources.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        if self.is_gpu() { "cuda" } else { "cpu" }
    }

    /// Returns the instruction set that `<file>.c` of its folder is compiled for, if a module for this one links that file.
    ///
    /// Most files gain nothing from the newest instructions, so that they share the object of an older set: only products
    /// use AMX, and only `matmul_bf16` and `matmul_e4m3_pairs` multiply bf16. `matmul_groups_*` read memory as suits the cores that have
    /// bf16. Of kernels for GPUs, those of a decode step overlap.
    #[must_use]
    pub fn object_isa(self, file: &str) -> Option<Self> {
        match (self, file) {
            (Self::Sm80, _) => Some(self),
            (Self::Sm90, "argmax" | "embed" | "norm_rows" | "rotation" | "stage") => Some(self),
            (Self::Sm90, file)
                if ["attention_", "experts_", "matvec_"].iter().any(|of| file.starts_with(of)) =>
            {
                Some(self)
            }
            (Self::Sm90, _) => Some(Self::Sm80),
            (Self::X86_64V4Bf16 | Self::X86_64V4Amx, "matmul_bf16") => Some(self),
            (Self::X86_64V4Amx, "matmul_e4m3_pairs") => Some(self),
            (_, "matmul_bf16" | "matmul_e4m3_pairs") => None,
            (Self::X86_64V4Amx, "matmul_q8")
            | (
                Self::X86_64V4Bf16 | Self::X86_64V4Amx,
                "matmul_groups_2" | "matmul_groups_3" | "matmul_groups_4" | "matmul_groups_5"
                | "matmul_groups_6" | "matmul_groups_8",
            ) => Some(self),
            (Self::X86_64V4Bf16 | Self::X86_64V4Amx, _) => Some(Self::X86_64V4Vnni),
            _ => Some(self),
        }
    }

    /// Returns the name of the object that a module for this instruction set links for a function of `<file>.c` of its folder.
    /// On a GPU each function has its own.
    #[must_use]
    pub fn object_name(self, file: &str, function: &str) -> String {
        let isa = self.object_isa(file).unwrap_or(self).name();
        if self.is_gpu() { format!("{function}-{isa}.ptx") } else { format!("{file}-{isa}.o") }
    }
}
