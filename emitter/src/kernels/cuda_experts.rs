//! Calls of `cuda/experts_*.c`: products of a single row with the experts of a mixture.

use safetensors::Dtype;

use super::{
    arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction},
    cuda_matmul::for_weights,
    executable::Grid,
    matvec::{MatvecActivation, MatvecBias, MatvecGate, MatvecRow, MatvecWeights},
};
use crate::{graph::Tensor, types::TensorType};

/// The most experts of a mixture, and of a token: as in `cuda/choose.h`.
pub(crate) const MAX_EXPERTS: usize = 512;
pub(crate) const MAX_ACTIVE: usize = 32;

/// The matrices of all experts, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpertMatrices {
    pub(crate) weights: MatvecWeights,
    pub(crate) weight: Tensor,
    /// The scales of quantized weights.
    pub(crate) scales: Option<Tensor>,
    /// `[experts, outputs]`. Without a bias, any tensor.
    pub(crate) bias: Tensor,
    pub(crate) bias_type: MatvecBias,
    /// Outputs of an expert, of all its layers.
    pub(crate) outputs: usize,
    pub(crate) experts: usize,
}

/// Where the rows of a gate and of what it gates are among an expert's: the gate's are `step` apart, from the first one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairedRows {
    /// The first row of what is gated.
    pub(crate) up: usize,
    pub(crate) step: usize,
}

/// Chooses the token's experts by their logits, and computes their gated products, each times its share of the result.
#[derive(Debug, Clone)]
pub(crate) struct CudaExpertsGated {
    pub(crate) row: MatvecRow,
    pub(crate) inputs: usize,
    pub(crate) logits: Tensor,
    pub(crate) experts: usize,
    pub(crate) active: usize,
    pub(crate) normalized: bool,
    pub(crate) matrices: ExpertMatrices,
    pub(crate) rows: PairedRows,
    pub(crate) activation: MatvecActivation,
    pub(crate) gate: MatvecGate,
}

/// Adds the products of the token's experts, and their biases by their shares, times a factor to a residual.
#[derive(Debug, Clone)]
pub(crate) struct CudaExpertsAdd {
    /// `[active · inputs of an expert]`.
    pub(crate) x: Tensor,
    pub(crate) inputs: usize,
    pub(crate) token_experts: Tensor,
    pub(crate) token_shares: Tensor,
    pub(crate) active: usize,
    pub(crate) matrices: ExpertMatrices,
    pub(crate) residual: Tensor,
    pub(crate) out: TensorType,
    pub(crate) factor: F32Bits,
}

impl ExpertMatrices {
    /// Adds the operands of a call that reads the matrices of so many experts at most.
    pub(super) fn add_operands(&self, arguments: &mut Arguments, active: usize) {
        let part = [active.min(self.experts), self.experts];
        arguments.parts_read.extend(["w", "s", "b"].map(|operand| (operand, part)));
        self.weight.add_to(arguments, "w");
        if let Some(scales) = self.scales {
            scales.add_to(arguments, "s");
        }
        self.bias.add_to(arguments, "b");
    }
}

impl CudaExpertsGated {
    /// Returns the outputs of an expert: a pair of rows has one.
    pub(crate) fn outputs(&self) -> usize {
        self.matrices.outputs / 2
    }

    fn division(&self) -> (usize, usize) {
        self.matrices.weights.division(self.active * self.outputs(), self.inputs)
    }

    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        MatvecWeights::grid_of(self.division().1)
    }
}

impl Kernel for CudaExpertsGated {
    fn function(&self) -> KernelFunction {
        macro_rules! of_type {
            ($ty:literal, $_small:literal, $_large:literal) => {
                KernelFunction { file: concat!("experts_", $ty), name: concat!("cuda_experts_gated_", $ty) }
            };
        }
        for_weights!(self.matrices.weights, of_type)
    }

    fn arguments(self) -> Arguments {
        let mut arguments = Arguments::default();
        let all = &mut arguments;
        let (outputs, (split, _)) = (self.outputs(), self.division());
        let Self { row, inputs, logits, experts, active, normalized, matrices, rows, activation, gate } =
            self;
        row.add_operands(all);
        logits.add_to(all, "logits");
        matrices.add_operands(all, active);
        TensorType::new(Dtype::F32, [active * outputs]).add_to(all, "out");
        TensorType::new(Dtype::I32, [active]).add_to(all, "token_experts");
        TensorType::new(Dtype::F32, [active]).add_to(all, "token_shares");
        outputs.add_to(all, "n");
        matrices.outputs.add_to(all, "rows");
        rows.up.add_to(all, "up");
        rows.step.add_to(all, "step");
        experts.add_to(all, "experts");
        active.add_to(all, "active");
        normalized.add_to(all, "normalized");
        inputs.add_to(all, "inputs");
        split.add_to(all, "split");
        row.add_numbers(all);
        matrices.bias_type.add_to(all, "bias_type");
        activation.add_to(all, "");
        gate.add_to(all, "");
        matrices.weights.add_format(all, inputs);
        arguments
    }
}

impl CudaExpertsAdd {
    fn division(&self) -> (usize, usize) {
        let ExpertMatrices { weights, outputs, .. } = self.matrices;
        weights.division(outputs.div_ceil(weights.rows()), self.inputs)
    }

    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        MatvecWeights::grid_of(self.division().1)
    }
}

impl Kernel for CudaExpertsAdd {
    fn function(&self) -> KernelFunction {
        macro_rules! of_type {
            ($ty:literal, $_small:literal, $_large:literal) => {
                KernelFunction { file: concat!("experts_", $ty), name: concat!("cuda_experts_add_", $ty) }
            };
        }
        for_weights!(self.matrices.weights, of_type)
    }

    fn arguments(self) -> Arguments {
        let mut arguments = Arguments::default();
        let all = &mut arguments;
        let (split, _) = self.division();
        let Self { x, inputs, token_experts, token_shares, active, matrices, residual, out, factor } = self;
        x.add_to(all, "x");
        token_experts.add_to(all, "token_experts");
        token_shares.add_to(all, "token_shares");
        matrices.add_operands(all, active);
        residual.add_to(all, "residual");
        out.add_to(all, "out");
        matrices.outputs.add_to(all, "n");
        active.add_to(all, "active");
        inputs.add_to(all, "inputs");
        split.add_to(all, "split");
        matrices.bias_type.add_to(all, "bias_type");
        factor.add_to(all, "factor");
        matrices.weights.add_format(all, inputs / active);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        for ty in MatvecWeights::every().map(MatvecWeights::name) {
            let function = format!("cuda_experts_gated_{ty}");
            let found = ["max_experts", "max_active"].map(|name| stated_constant(&function, name));
            assert_eq!(found, [MAX_EXPERTS, MAX_ACTIVE].map(Some), "{ty}");
        }
    }
}
