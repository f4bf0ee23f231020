//! How instruction sets are chosen, and which data their kernels read.

use mlxcel_artifacts::cpu_features;
use safetensors::Dtype;

use super::isa::Isa;

impl Isa {
    /// Returns the best instruction set for a CPU with these features, which have LLVM's names.
    #[must_use]
    pub fn of_cpu(arch: &str, features: &[String]) -> Option<Self> {
        let has = |name: &str| features.iter().any(|feature| feature == name);
        Self::ALL.into_iter().rfind(|isa| isa.runs_on(arch, has))
    }

    /// Returns whether a CPU runs its code, where `has` returns whether the CPU has a feature by LLVM's name.
    pub fn runs_on(self, arch: &str, has: impl Fn(&str) -> bool) -> bool {
        let needed = cpu_features(self.arch(), self.features().iter().copied());
        arch == self.arch() && needed.is_ok_and(|needed| needed.into_iter().all(has))
    }

    /// Returns how many inputs of one output are adjacent in 8-bit panels, see `matmul_q8.c`.
    pub(crate) fn q8_interleave(self) -> usize {
        match self {
            Self::X86_64V3 => 2,
            Self::X86_64V4Vnni | Self::X86_64V4Bf16 | Self::X86_64V4Amx | Self::Aarch64 => 4,
            Self::Sm80 | Self::Sm90 => 1,
        }
    }

    /// Returns how many outputs a panel of weights in groups has, see `groups.h`.
    pub(crate) fn group_outputs(self) -> usize {
        match self {
            Self::X86_64V4Vnni | Self::X86_64V4Bf16 | Self::X86_64V4Amx => 16,
            Self::X86_64V3 | Self::Aarch64 | Self::Sm80 | Self::Sm90 => 8,
        }
    }

    /// Returns the element type of activations that `quantize_rows` writes.
    pub(crate) fn q8_activation(self) -> Dtype {
        match self {
            Self::X86_64V3 => Dtype::I16,
            Self::X86_64V4Vnni
            | Self::X86_64V4Bf16
            | Self::X86_64V4Amx
            | Self::Aarch64
            | Self::Sm80
            | Self::Sm90 => Dtype::I8,
        }
    }

    /// Returns whether it multiplies pairs of bf16, see `matmul_bf16.c`.
    pub(crate) fn multiplies_bf16(self) -> bool {
        self.object_isa("matmul_bf16").is_some()
    }

    /// Returns whether it multiplies pairs of E4M3 and bf16, see `matmul_e4m3_pairs.c`.
    pub(crate) fn multiplies_e4m3_pairs(self) -> bool {
        self.object_isa("matmul_e4m3_pairs").is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_in_the_table_of_cpu_features() {
        for isa in Isa::ALL {
            assert!(cpu_features(isa.arch(), isa.features().iter().copied()).is_ok(), "{}", isa.name());
        }
    }
}
