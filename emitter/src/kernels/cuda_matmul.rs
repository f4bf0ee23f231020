//! Calls of `cuda/matmul_*.c`: products of several rows.

use super::{
    arguments::{Argument, Arguments, Kernel, KernelFunction, arguments, kernels},
    executable::Grid,
    matvec::{
        BIASES, MAX_MATRICES, MatvecActivation, MatvecBias, MatvecGate, MatvecWeights, OUTPUTS, RESULTS,
        SCALES, WEIGHTS,
    },
};
use crate::{graph::Tensor, types::TensorType};

/// Threads of a workgroup that adds parts, and elements of each: as in `cuda/matmul_sum.c`.
const SUM_THREADS: usize = 256;
const SUM_ELEMENTS: usize = 4;

/// How a kernel divides the result into tiles, each of a workgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tiles {
    Small,
    Medium,
    Large,
}

impl Tiles {
    /// Returns rows and columns of a tile, and the threads that compute it: as the kernels state them.
    pub(crate) fn shape(self, weights: MatvecWeights) -> [usize; 3] {
        use MatvecWeights::{Bf16, F16, F32, Groups, Q4, Q8};
        match (weights, self) {
            (Groups(form), Self::Large) if form.takes_floats() && form.bits == 4 => [64, 64, 128],
            (F32, Self::Large) => [128, 64, 128],
            (F32, _) => [64, 64, 64],
            (Q4 | Groups(_), Self::Small) => [32, 64, 64],
            (Bf16 | F16 | Q8, Self::Small) => [32, 64, 128],
            (_, Self::Medium) => [64, 64, 128],
            (Q4 | Groups(_), Self::Large) => [128, 64, 128],
            (Bf16 | F16 | Q8, Self::Large) => [128, 128, 128],
        }
    }
}

/// A matrix that rows are multiplied by.
#[derive(Debug, Clone)]
pub(crate) struct CudaMatrix {
    pub(crate) weight: Tensor,
    /// The scales of quantized weights.
    pub(crate) scales: Option<Tensor>,
    /// Without a bias, any tensor.
    pub(crate) bias: Tensor,
    /// `[splits, rows, outputs]`.
    pub(crate) out: TensorType,
    pub(crate) outputs: usize,
}

/// Multiplies rows by up to [`MAX_MATRICES`] matrices. Each of the `splits` results has the sums over a part of the inputs.
#[derive(Debug, Clone)]
pub(crate) struct CudaMatmul {
    pub(crate) weights: MatvecWeights,
    pub(crate) tiles: Tiles,
    pub(crate) x: Tensor,
    pub(crate) matrices: Vec<CudaMatrix>,
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) splits: usize,
    pub(crate) bias_type: MatvecBias,
}

arguments! {
    /// Adds the parts of a product.
    struct CudaMatmulSum {
        parts: Tensor,
        out: TensorType,
        /// The elements of a part.
        count: usize,
        splits: usize,
    }
}

kernels! { CudaMatmulSum => "matmul_sum", "cuda_matmul_sum"; }

/// Multiplies rows by the matrices of a gate and of what it gates, and activates: `[rows, outputs]` in the rows' type.
#[derive(Debug, Clone)]
pub(crate) struct CudaMatmulGated {
    pub(crate) weights: MatvecWeights,
    pub(crate) tiles: Tiles,
    pub(crate) x: Tensor,
    /// The weights of gate and up, each with its scales if it is quantized, and its bias; without one, any tensor.
    pub(crate) matrices: [(Tensor, Option<Tensor>, Tensor); 2],
    pub(crate) out: TensorType,
    pub(crate) n: usize,
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) bias_type: MatvecBias,
    pub(crate) activation: MatvecActivation,
    pub(crate) gate: MatvecGate,
}

/// Expands a macro for the type of weights, with its name and those of its smallest and its largest tiles. With large tiles, floats of
/// 4 bits would need more registers than there are.
macro_rules! for_weights {
    ($weights:expr, $of_type:ident) => {
        match $weights {
            MatvecWeights::F32 => $of_type!("f32", "medium", "large"),
            MatvecWeights::Bf16 => $of_type!("bf16", "small", "large"),
            MatvecWeights::F16 => $of_type!("f16", "small", "large"),
            MatvecWeights::Q8 => $of_type!("q8", "small", "large"),
            MatvecWeights::Q4 => $of_type!("q4", "small", "large"),
            MatvecWeights::Groups(form) if form.takes_floats() && form.bits == 8 => {
                $of_type!("e4m3", "small", "large")
            }
            MatvecWeights::Groups(form) if form.takes_floats() => $of_type!("f4", "small", "medium"),
            MatvecWeights::Groups($crate::group_form::GroupForm { bits: 4, .. }) => {
                $of_type!("g4", "small", "large")
            }
            MatvecWeights::Groups($crate::group_form::GroupForm { bits: 5, .. }) => {
                $of_type!("g5", "small", "large")
            }
            MatvecWeights::Groups($crate::group_form::GroupForm { bits: 6, .. }) => {
                $of_type!("g6", "small", "large")
            }
            MatvecWeights::Groups(_) => $of_type!("g8", "small", "large"),
        }
    };
}

pub(super) use for_weights;

impl CudaMatmulGated {
    /// Returns the workgroups of the call. The columns of a tile are of both matrices.
    pub(crate) fn grid(&self) -> Grid {
        let [rows, columns, threads] = self.tiles.shape(self.weights);
        Grid { items: self.m.div_ceil(rows) * self.n.div_ceil(columns / 2), grain: threads }
    }
}

impl Kernel for CudaMatmulGated {
    fn function(&self) -> KernelFunction {
        macro_rules! of_type {
            ($ty:literal, $small:literal, $large:literal) => {{
                let name = match self.tiles {
                    Tiles::Small => concat!("cuda_matmul_gated_", $ty, "_", $small),
                    Tiles::Medium => concat!("cuda_matmul_gated_", $ty, "_medium"),
                    Tiles::Large => concat!("cuda_matmul_gated_", $ty, "_", $large),
                };
                KernelFunction { file: concat!("matmul_", $ty), name }
            }};
        }
        for_weights!(self.weights, of_type)
    }

    fn arguments(self) -> Arguments {
        let Self { weights, tiles: _, x, matrices, out, n, m, k, bias_type, activation, gate } = self;
        let mut arguments = Arguments::default();
        x.add_to(&mut arguments, "x");
        for ((weight, scales, bias), index) in matrices.into_iter().zip(0..) {
            weight.add_to(&mut arguments, WEIGHTS[index]);
            if let Some(scales) = scales {
                scales.add_to(&mut arguments, SCALES[index]);
            }
            bias.add_to(&mut arguments, BIASES[index]);
        }
        out.add_to(&mut arguments, "out");
        n.add_to(&mut arguments, "n");
        m.add_to(&mut arguments, "m");
        k.add_to(&mut arguments, "k");
        bias_type.add_to(&mut arguments, "bias_type");
        activation.add_to(&mut arguments, "");
        gate.add_to(&mut arguments, "");
        weights.add_format(&mut arguments, k);
        arguments
    }
}

impl CudaMatmulSum {
    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        Grid { items: self.count.div_ceil(SUM_THREADS * SUM_ELEMENTS), grain: SUM_THREADS }
    }
}

impl CudaMatmul {
    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        let [rows, columns, threads] = self.tiles.shape(self.weights);
        let tiles: usize = self.matrices.iter().map(|matrix| matrix.outputs.div_ceil(columns)).sum();
        Grid { items: self.splits * self.m.div_ceil(rows) * tiles, grain: threads }
    }
}

impl Kernel for CudaMatmul {
    fn function(&self) -> KernelFunction {
        macro_rules! of_type {
            ($ty:literal, $small:literal, $large:literal) => {{
                let names = match self.tiles {
                    Tiles::Small => of_type!(@ $ty, $small),
                    Tiles::Medium => of_type!(@ $ty, "medium"),
                    Tiles::Large => of_type!(@ $ty, $large),
                };
                let index = self.matrices.len().clamp(1, MAX_MATRICES) - 1;
                KernelFunction { file: concat!("matmul_", $ty), name: names[index] }
            }};
            (@ $ty:literal, $tiles:literal) => {
                [
                    concat!("cuda_matmul_", $ty, "_", $tiles, "_1"),
                    concat!("cuda_matmul_", $ty, "_", $tiles, "_2"),
                    concat!("cuda_matmul_", $ty, "_", $tiles, "_3"),
                ]
            };
        }
        for_weights!(self.weights, of_type)
    }

    fn arguments(self) -> Arguments {
        let Self { weights, tiles: _, x, matrices, m, k, splits, bias_type } = self;
        let mut arguments = Arguments::default();
        x.add_to(&mut arguments, "x");
        for (index, CudaMatrix { weight, scales, bias, out, outputs }) in matrices.into_iter().enumerate() {
            weight.add_to(&mut arguments, WEIGHTS[index]);
            if let Some(scales) = scales {
                scales.add_to(&mut arguments, SCALES[index]);
            }
            bias.add_to(&mut arguments, BIASES[index]);
            out.add_to(&mut arguments, RESULTS[index]);
            outputs.add_to(&mut arguments, OUTPUTS[index]);
        }
        m.add_to(&mut arguments, "m");
        k.add_to(&mut arguments, "k");
        splits.add_to(&mut arguments, "splits");
        bias_type.add_to(&mut arguments, "bias_type");
        weights.add_format(&mut arguments, k);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn shapes_are_those_of_the_kernels() {
        for weights in MatvecWeights::every() {
            let name = weights.name();
            for (tiles, size) in [(Tiles::Small, "small"), (Tiles::Medium, "medium"), (Tiles::Large, "large")]
            {
                // Products in f32 have no small tiles, and floats of 4 bits no large ones.
                let size = match (name, tiles) {
                    ("f32", Tiles::Small) | ("f4", Tiles::Large) => "medium",
                    _ => size,
                };
                let stated = |what| {
                    stated_constant(&format!("cuda_matmul_{name}_{size}_1"), &format!("{name}_{size}_{what}"))
                };
                let found = ["rows", "columns", "threads"].map(stated);
                assert_eq!(found, tiles.shape(weights).map(Some), "{name} {size}");
            }
        }
        assert_eq!(stated_constant("cuda_matmul_sum", "threads"), Some(SUM_THREADS));
    }
}
