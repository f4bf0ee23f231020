//! Calls of `cuda/route.c` and `cuda/matmul_experts_*.c`: mixtures of several tokens.

use super::{
    arguments::{Argument, Arguments, Kernel, KernelFunction, arguments, kernels},
    cuda_experts::{ExpertMatrices, PairedRows},
    cuda_matmul::{Tiles, for_weights},
    executable::Grid,
    matvec::{MatvecActivation, MatvecGate, MatvecWeights},
};
use crate::{graph::Tensor, types::TensorType};

/// Threads of a workgroup of `cuda/route.c`, and of the one that sorts.
const THREADS: usize = 256;
const SORT_THREADS: usize = 512;

/// Threads that choose the experts of a token, and elements that a thread combines.
const LANES: usize = 32;
const ELEMENTS: usize = 4;

arguments! {
    /// Chooses the experts of each token, and their shares of the result.
    struct CudaChooseExperts {
        logits: Tensor,
        /// `[3, tokens]`, of which the second are slots: those of padding are 0.
        row_numbers: Tensor,
        token_experts: TensorType,
        token_shares: TensorType,
        tokens: usize,
        experts: usize,
        active: usize,
        normalized: bool,
    }

    /// Sorts rows, each a token with one of its experts, by expert, and divides them into tiles of one expert.
    struct CudaSortRows {
        token_experts: Tensor,
        places: TensorType,
        row_tokens: TensorType,
        tiles: TensorType,
        rows: usize,
        experts: usize,
        active: usize,
        tile_rows: usize,
        max_tiles: usize,
    }

    /// Adds the products of each token's experts, times their shares.
    struct CudaCombineExperts {
        products: Tensor,
        places: Tensor,
        token_shares: Tensor,
        out: TensorType,
        tokens: usize,
        width: usize,
        active: usize,
    }
}

kernels! {
    CudaChooseExperts => "route", "cuda_choose_experts";
    CudaSortRows => "route", "cuda_sort_rows";
    CudaCombineExperts => "route", "cuda_combine_experts";
}

impl CudaChooseExperts {
    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        Grid { items: self.tokens.div_ceil(THREADS / LANES), grain: THREADS }
    }
}

impl CudaSortRows {
    /// The workgroup of the call.
    pub(crate) const GRID: Grid = Grid { items: 1, grain: SORT_THREADS };
}

impl CudaCombineExperts {
    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        Grid { items: (self.tokens * self.width).div_ceil(THREADS * ELEMENTS), grain: THREADS }
    }
}

/// What multiplies sorted rows by the weights of their experts.
#[derive(Debug, Clone)]
pub(crate) struct CudaMatmulExperts {
    /// Small or medium.
    pub(crate) tiles: Tiles,
    /// Sorted rows, or those of tokens if the products are gated.
    pub(crate) x: Tensor,
    pub(crate) matrices: ExpertMatrices,
    /// The tiles of [`CudaSortRows`].
    pub(crate) tile_list: Tensor,
    pub(crate) out: TensorType,
    pub(crate) n: usize,
    pub(crate) max_tiles: usize,
    pub(crate) k: usize,
    pub(crate) gated: Option<GatedExperts>,
}

/// What gated products have besides.
#[derive(Debug, Clone)]
pub(crate) struct GatedExperts {
    /// The token of each sorted row.
    pub(crate) row_tokens: Tensor,
    pub(crate) rows: PairedRows,
    pub(crate) activation: MatvecActivation,
    pub(crate) gate: MatvecGate,
}

impl CudaMatmulExperts {
    /// Returns the workgroups of the call. The columns of a gated tile are of both matrices.
    pub(crate) fn grid(&self) -> Grid {
        let [_, columns, threads] = self.tiles.shape(self.matrices.weights);
        let columns = if self.gated.is_some() { columns / 2 } else { columns };
        Grid { items: self.max_tiles * self.n.div_ceil(columns), grain: threads }
    }
}

impl Kernel for CudaMatmulExperts {
    fn function(&self) -> KernelFunction {
        macro_rules! of_type {
            ($ty:literal, $small:literal, $_large:literal) => {{
                let name = match (self.tiles, self.gated.is_some()) {
                    (Tiles::Small, false) => concat!("cuda_matmul_experts_", $ty, "_", $small),
                    (Tiles::Small, true) => concat!("cuda_matmul_experts_gated_", $ty, "_", $small),
                    (_, false) => concat!("cuda_matmul_experts_", $ty, "_medium"),
                    (_, true) => concat!("cuda_matmul_experts_gated_", $ty, "_medium"),
                };
                KernelFunction { file: concat!("matmul_experts_", $ty), name }
            }};
        }
        for_weights!(self.matrices.weights, of_type)
    }

    fn arguments(self) -> Arguments {
        let Self { tiles: _, x, matrices, tile_list, out, n, max_tiles, k, gated } = self;
        let mut arguments = Arguments::default();
        let all = &mut arguments;
        x.add_to(all, "x");
        // Each row is of one expert.
        matrices.add_operands(all, out.shape[0]);
        tile_list.add_to(all, "tiles");
        if let Some(GatedExperts { row_tokens, .. }) = gated {
            row_tokens.add_to(all, "row_tokens");
        }
        out.add_to(all, "out");
        n.add_to(all, "n");
        if let Some(GatedExperts { rows, .. }) = gated {
            matrices.outputs.add_to(all, "rows");
            rows.up.add_to(all, "up");
            rows.step.add_to(all, "step");
        }
        max_tiles.add_to(all, "max_tiles");
        k.add_to(all, "k");
        matrices.bias_type.add_to(all, "bias_type");
        if let Some(GatedExperts { activation, gate, .. }) = gated {
            activation.add_to(all, "");
            gate.add_to(all, "");
        }
        matrices.weights.add_format(all, k);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        let found = ["threads", "sort_threads"].map(|name| stated_constant("cuda_sort_rows", name));
        assert_eq!(found, [THREADS, SORT_THREADS].map(Some));
        for weights in MatvecWeights::every() {
            let ty = weights.name();
            for (tiles, name) in [(Tiles::Small, "small"), (Tiles::Medium, "medium")] {
                let name = if weights == MatvecWeights::F32 { "medium" } else { name };
                let shape = ["rows", "columns", "threads"].map(|size| {
                    let stated = format!("{ty}_{name}_{size}");
                    stated_constant(&format!("cuda_matmul_experts_{ty}_{name}"), &stated)
                });
                assert_eq!(shape, tiles.shape(weights).map(Some), "{ty} {name}");
            }
        }
    }
}
