//! The weights of all experts, as generated code and kernels of GPUs read them.

use safetensors::Dtype;

use super::linears::ExpertLinears;
use crate::{
    form::Form,
    graph::{Graph, Tensor},
    group_form::GroupForm,
    kernels::{CudaGroups, ExpertMatrices, MatvecBias},
    layers::{
        builder::Builder,
        gpu_groups,
        linear::{packed, row_weights, vector},
        quantization::dequantize_q4,
        weights::Weights,
    },
    ops::DotDimensions,
};

/// The matrices of all experts, `[experts, outputs, …]`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stack {
    /// `[experts, outputs, inputs]`.
    Floats(Tensor),
    /// Whole numbers, `[experts, outputs, inputs]`, with scales `[experts, outputs]`.
    Rows([Tensor; 2]),
    /// Codes and what groups have, `[experts, outputs, …]`: of [`GroupForm::Q4_0`] nibbles, `[…, groups, 16]`, and scales,
    /// `[…, groups]`, otherwise as `cuda/groups.h` has them.
    Groups(GroupForm, [Tensor; 2]),
}

impl Stack {
    /// Loads the matrices of so many experts.
    pub(super) fn load(b: &mut Builder<'_>, weights: Weights<'_>, experts: usize) -> Self {
        let form = weights.layers().first().map_or(Form::Floats, |first| b.form(first.weight));
        let (outputs, _) = weights.size();
        let by_expert = |b: &mut Builder<'_>, x: Tensor| {
            let rest = b.graph.shape(x).get(1..).unwrap_or_default().to_vec();
            b.graph.reshape(x, &[&[experts, outputs], rest.as_slice()].concat())
        };
        match form {
            Form::Floats => {
                let made = b.packed("stack", weights, 1, &[], |_, _, rows| vec![rows]);
                Self::Floats(by_expert(b, made[0]))
            }
            Form::Rows => Self::Rows(packed(b, weights).map(|part| by_expert(b, part))),
            Form::Groups(form) => Self::Groups(form, packed(b, weights).map(|part| by_expert(b, part))),
        }
    }

    /// Returns the weights, and the scales of quantized ones.
    pub(super) fn parts(self) -> (Tensor, Option<Tensor>) {
        match self {
            Self::Floats(weights) => (weights, None),
            Self::Rows([weights, scales]) | Self::Groups(_, [weights, scales]) => (weights, Some(scales)),
        }
    }

    /// Multiplies `[rows, inputs]` by the matrix of one expert: `[rows, outputs]`. Scaled groups are multiplied in `f32`, because
    /// they are not exact in less.
    pub(super) fn product(self, g: &mut Graph, expert: Tensor, x: Tensor, operand: Dtype) -> Tensor {
        match self {
            Self::Floats(weights) => {
                let weight = of_expert(g, weights, expert);
                dot(g, x, weight, operand)
            }
            Self::Rows(parts) => {
                let [weight, scales] = parts.map(|part| of_expert(g, part, expert));
                let product = dot(g, x, weight, operand);
                let shape = g.shape(product).to_vec();
                let scales = g.broadcast_in_dim(scales, &shape, &[1]);
                g.multiply(product, scales)
            }
            Self::Groups(form, parts) => {
                let parts = parts.map(|part| of_expert(g, part, expert));
                let (outputs, inputs) = (row_count(g, parts[1]), g.shape(x).last().copied().unwrap_or(1));
                let weight = match form {
                    GroupForm::Q4_0 => dequantize_q4(g, parts[0], parts[1], &[outputs, inputs]),
                    form => gpu_groups::unpacked(g, parts, CudaGroups { form, inputs }),
                };
                dot(g, x, weight, Dtype::F32)
            }
        }
    }
}

/// Loads the weights of all experts for kernels of GPUs, with their biases. Without any, `other` is passed.
pub(super) fn matrices(
    b: &mut Builder<'_>,
    layers: &ExpertLinears<'_>,
    count: usize,
    other: Tensor,
) -> Option<ExpertMatrices> {
    let weights = row_weights(b, layers.weights().layers().first()?.weight)?;
    let (weight, scales) = Stack::load(b, layers.weights(), count).parts();
    let (bias, bias_type) = match layers.bias() {
        Some(bias) => {
            let (table, ty) = vector(b, bias);
            (table, MatvecBias::Of(ty))
        }
        None => (other, MatvecBias::None),
    };
    let (outputs, _) = layers.weights().size();
    Some(ExpertMatrices { weights, weight, scales, bias, bias_type, outputs, experts: count })
}

/// Returns the part of one expert of `[experts, …]`.
pub(super) fn of_expert(g: &mut Graph, table: Tensor, expert: Tensor) -> Tensor {
    let zero = g.scalar(0.0, Dtype::I32);
    let mut sizes = g.shape(table).to_vec();
    let rest = sizes.get(1..).unwrap_or_default().to_vec();
    let mut starts = vec![zero; sizes.len()];
    if let (Some(size), Some(start)) = (sizes.first_mut(), starts.first_mut()) {
        (*size, *start) = (1, expert);
    }
    let found = g.dynamic_slice(table, &starts, &sizes);
    g.reshape(found, &rest)
}

fn row_count(g: &Graph, x: Tensor) -> usize {
    g.shape(x).first().copied().unwrap_or(1)
}

/// Computes `[rows, inputs] · [outputs, inputs]ᵀ` of operands in a type.
fn dot(g: &mut Graph, x: Tensor, weight: Tensor, operand: Dtype) -> Tensor {
    let [x, weight] = [x, weight].map(|x| g.convert(x, operand));
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
    g.dot_general(x, weight, &dims, Dtype::F32)
}
