//! Calls of `factor.c` and of `compensate_*.c`, which round weights by the moments of their inputs.

use super::arguments::{F32Bits, arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Factors the moments of `k` inputs.
    struct FactorMoments {
        moments: Tensor,
        factor: TensorType,
        pivots: TensorType,
        scaled: TensorType,
        k: usize,
        damping: F32Bits,
    }

    /// Weights with the factor of their inputs' moments.
    struct FactoredWeights {
        w: Tensor,
        factor: Tensor,
        pivots: Tensor,
    }

    /// Rounds weights to superblocks of so many bits.
    struct CompensateSuperblocks {
        weights: FactoredWeights,
        codes: TensorType,
        unit: TensorType,
        least: TensorType,
        scales: TensorType,
        minima: TensorType,
        errors: TensorType,
        n: usize,
        k: usize,
        bits: usize,
    }

    /// Rounds weights to superblocks of 6 bits, with a scale for half a group.
    struct CompensateHalves {
        weights: FactoredWeights,
        codes: TensorType,
        unit: TensorType,
        scales: TensorType,
        errors: TensorType,
        n: usize,
        k: usize,
    }
}

kernels! {
    FactorMoments => "factor", "factor_moments";
    CompensateSuperblocks => "compensate_superblocks", "compensate_superblocks";
    CompensateHalves => "compensate_halves", "compensate_halves";
}
