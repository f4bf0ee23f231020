//! Calls of `matmul_*.c`: products of rows and packed weights.

use super::{
    arguments::{Argument, Arguments, Kernel, KernelFunction, arguments},
    groups::{FloatFormat, GroupSizes, products},
};
use crate::{graph::Tensor, group_form::GroupForm, types::TensorType};

/// Packed weights `w` and rows `a`, each with its scales.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MatmulOperands {
    /// Weights in `f32`, rows in `f32`.
    F32 { w: Tensor, a: Tensor },
    /// Weights in bf16, rows in `f32`.
    Bf16 { w: Tensor, a: Tensor },
    /// Weights in f16, rows in `f32`.
    F16 { w: Tensor, a: Tensor },
    /// Pairs of bf16, of weights and of rows.
    Bf16Pairs { w: Tensor, a: Tensor },
    /// Both in 8 bits.
    Q8 { w: Tensor, w_scale: Tensor, a: Tensor, a_scale: Tensor },
    /// Weights in floating-point numbers of 8 or 4 bits, rows in `f32`.
    Floats { form: GroupForm, w: Tensor, w_scale: Tensor, a: Tensor },
    /// Weights in floating-point numbers of 8 bits, rows in bf16. Pairs of inputs have one scale.
    FloatPairs { form: GroupForm, w: Tensor, w_scale: Tensor, a: Tensor },
    /// Weights of a form in groups, rows as sums of `terms` rows in 8 bits in groups of 32.
    Groups {
        form: GroupForm,
        w: Tensor,
        w_scale: Tensor,
        a: Tensor,
        a_scale: Tensor,
        a_sums: Tensor,
        terms: usize,
    },
}

impl MatmulOperands {
    /// Returns the functions for plain rows and for rows of experts.
    fn functions(self) -> [KernelFunction; 2] {
        let (file, names) = match self {
            Self::F32 { .. } => ("matmul_float", ["matmul_f32", "matmul_f32_experts"]),
            Self::Bf16 { .. } => ("matmul_float", ["matmul_bf16", "matmul_bf16_experts"]),
            Self::F16 { .. } => ("matmul_float", ["matmul_f16", "matmul_f16_experts"]),
            Self::Bf16Pairs { .. } => ("matmul_bf16", ["matmul_bf16_pairs", "matmul_bf16_pairs_experts"]),
            Self::FloatPairs { .. } => {
                ("matmul_e4m3_pairs", ["matmul_e4m3_pairs", "matmul_e4m3_pairs_experts"])
            }
            Self::Q8 { .. } => ("matmul_q8", ["matmul_q8", "matmul_q8_experts"]),
            Self::Floats { form, .. } | Self::Groups { form, .. } => return products(form),
        };
        names.map(|name| KernelFunction { file, name })
    }

    /// Adds the sizes that only weights in groups have, after the others.
    fn add_group_sizes(self, arguments: &mut Arguments) {
        match self {
            Self::Floats { form, .. } | Self::FloatPairs { form, .. } => {
                FloatFormat::from(form).add_to(arguments, "");
            }
            Self::Groups { form, terms, .. } => {
                GroupSizes::from(form).add_to(arguments, "");
                terms.add_to(arguments, "terms");
            }
            _ => {}
        }
    }
}

impl Argument for MatmulOperands {
    fn add_to(self, arguments: &mut Arguments, _: &'static str) {
        let mut add = |named: &[(&'static str, Tensor)]| arguments.operands.extend_from_slice(named);
        match self {
            Self::F32 { w, a } | Self::Bf16 { w, a } | Self::F16 { w, a } | Self::Bf16Pairs { w, a } => {
                add(&[("w", w), ("a", a)]);
            }
            Self::Q8 { w, w_scale, a, a_scale } => {
                add(&[("w", w), ("w_scale", w_scale), ("a", a), ("a_scale", a_scale)]);
            }
            Self::Floats { w, w_scale, a, .. } | Self::FloatPairs { w, w_scale, a, .. } => {
                add(&[("w", w), ("w_scale", w_scale), ("a", a)])
            }
            Self::Groups { w, w_scale, a, a_scale, a_sums, .. } => {
                add(&[("w", w), ("w_scale", w_scale), ("a", a), ("a_scale", a_scale), ("a_sums", a_sums)])
            }
        }
    }
}

arguments! {
    /// Multiplies `[batch, tokens]` rows of `k` inputs by weights of `n` outputs.
    struct Matmul {
        operands: MatmulOperands,
        lengths: Tensor,
        out: TensorType,
        batch: usize,
        tokens: usize,
        n: usize,
        k: usize,
    }

    /// Multiplies rows that are sorted by expert, each by the weights of its expert.
    struct MatmulExperts {
        operands: MatmulOperands,
        /// The expert of each segment of rows.
        experts: Tensor,
        /// The first row of each segment, and the end of the last one.
        begins: Tensor,
        out: TensorType,
        n: usize,
        k: usize,
    }
}

impl Kernel for Matmul {
    fn function(&self) -> KernelFunction {
        self.operands.functions()[0]
    }

    fn arguments(self) -> Arguments {
        let operands = self.operands;
        let mut arguments = Arguments::of(self);
        operands.add_group_sizes(&mut arguments);
        arguments
    }
}

impl Kernel for MatmulExperts {
    fn function(&self) -> KernelFunction {
        self.operands.functions()[1]
    }

    fn arguments(self) -> Arguments {
        let operands = self.operands;
        let mut arguments = Arguments::of(self);
        operands.add_group_sizes(&mut arguments);
        arguments
    }
}
