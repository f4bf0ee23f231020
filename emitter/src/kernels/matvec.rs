//! Calls of `cuda/matvec_*.c`: products of a single row, with what comes before and after them.

use super::{
    arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction, arguments},
    cuda_groups::CudaGroups,
    executable::Grid,
};
use crate::{graph::Tensor, group_form::GroupForm, types::TensorType};

/// The most matrices of one call.
pub(crate) const MAX_MATRICES: usize = 3;

/// Threads and warps of a workgroup: as in `cuda/row_input.h`.
const THREADS: usize = 256;
const LANES: usize = 32;
const WARPS: usize = THREADS / LANES;

/// Vectors of a row that a thread reads at once: as in `cuda/row_product.h`.
const VECTORS: usize = 4;

/// The fewest workgroups of floats that keep an H100 busy, and the most of packed weights, which are as many as it runs at a time:
/// these take turns, because each computes the norm again.
const BUSY: usize = 384;
const RESIDENT: usize = 264;

/// The names of parameters for each matrix: of its weights, their scales, its bias, its results and their number.
pub(super) const WEIGHTS: [&str; MAX_MATRICES] = ["w0", "w1", "w2"];
pub(super) const SCALES: [&str; MAX_MATRICES] = ["s0", "s1", "s2"];
pub(super) const BIASES: [&str; MAX_MATRICES] = ["b0", "b1", "b2"];
pub(super) const RESULTS: [&str; MAX_MATRICES] = ["out0", "out1", "out2"];
pub(super) const OUTPUTS: [&str; MAX_MATRICES] = ["n0", "n1", "n2"];

/// Floats of a row that a workgroup stages at most: as in `cuda/row_input.h`. A row with a norm may not have more.
pub(crate) const ROW_CAPACITY: usize = 12032;

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatvecWeights {
    F32,
    Bf16,
    F16,
    Q8,
    /// [`GroupForm::Q4_0`].
    Q4,
    /// Any other form.
    Groups(GroupForm),
}

/// What a kernel does with products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain(usize),
    Activated,
    Gated,
    Added,
}

impl MatvecWeights {
    fn function(self, form: Form) -> KernelFunction {
        macro_rules! names {
            ($ty:literal) => {{
                let name = match form {
                    Form::Plain(1) => concat!("cuda_norm_matvec_", $ty, "_1"),
                    Form::Plain(2) => concat!("cuda_norm_matvec_", $ty, "_2"),
                    Form::Plain(_) => concat!("cuda_norm_matvec_", $ty, "_3"),
                    Form::Activated => concat!("cuda_norm_activated_", $ty),
                    Form::Gated => concat!("cuda_norm_gated_", $ty),
                    Form::Added => concat!("cuda_matvec_add_", $ty),
                };
                KernelFunction { file: concat!("matvec_", $ty), name }
            }};
        }
        match self {
            Self::F32 => names!("f32"),
            Self::Bf16 => names!("bf16"),
            Self::F16 => names!("f16"),
            Self::Q8 => names!("q8"),
            Self::Q4 => names!("q4"),
            Self::Groups(form) if form.takes_floats() && form.bits == 8 => names!("e4m3"),
            Self::Groups(form) if form.takes_floats() => names!("f4"),
            Self::Groups(GroupForm { bits: 4, .. }) => names!("g4"),
            Self::Groups(GroupForm { bits: 5, .. }) => names!("g5"),
            Self::Groups(GroupForm { bits: 6, .. }) => names!("g6"),
            Self::Groups(_) => names!("g8"),
        }
    }

    /// Adds the arguments that weights in groups have besides. A row has so many inputs.
    pub(super) fn add_format(self, arguments: &mut Arguments, inputs: usize) {
        if let Self::Groups(form) = self {
            CudaGroups { form, inputs }.add_numbers(arguments);
        }
    }

    /// Returns how many outputs a unit has, unless it is a pair of two matrices.
    pub(super) fn rows(self) -> usize {
        if matches!(self, Self::Q4 | Self::Groups(GroupForm { bits: 4, .. })) { 2 } else { 1 }
    }

    /// Returns how many inputs a thread reads at once.
    pub(crate) fn vector(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 8,
            Self::Q8 | Self::Groups(GroupForm { bits: 8, .. }) => 16,
            Self::Q4 | Self::Groups(_) => 32,
        }
    }

    /// Returns whether codes are floating-point numbers, which multiply floats of a single row.
    fn has_floats(self) -> bool {
        matches!(self, Self::Groups(form) if form.takes_floats())
    }

    /// Returns whether weights have few bits. Rows that they multiply at once are in bf16, in tiles of as many rows.
    pub(crate) fn is_packed(self) -> bool {
        matches!(self, Self::Q8 | Self::Q4 | Self::Groups(_))
    }

    /// Returns how many warps share each of so many units, and the workgroups that compute them.
    pub(super) fn division(self, units: usize, inputs: usize) -> (usize, usize) {
        let workgroups = |split: usize| (units * split).div_ceil(WARPS);
        if !self.is_packed() {
            let split = if units < BUSY * WARPS { 2 } else { 1 };
            return (split, workgroups(split));
        }
        // Each warp has at least one chunk of a row. Those that do not run at the same time take turns.
        let chunks = inputs.div_ceil(self.vector() * VECTORS * LANES);
        let most = self.most_sharing(inputs);
        let steps = |split: usize| (units * split).div_ceil(RESIDENT * WARPS) * chunks.div_ceil(split);
        let splits = [1, 2, 4, 8].into_iter().filter(|&split| split == 1 || split <= chunks.min(most));
        let split = splits.min_by_key(|&split| steps(split)).unwrap_or(1);
        (split, workgroups(split).min(RESIDENT))
    }

    /// Returns how many warps may share a unit: all, unless a row is staged in slices, which have a chunk of each.
    fn most_sharing(self, inputs: usize) -> usize {
        // Whole numbers have two bytes each, and their scale and their sum.
        let bytes = if self.has_floats() { 4 * self.vector() } else { 2 * self.vector() + 8 };
        let vectors = ROW_CAPACITY * 4 / bytes;
        if inputs / self.vector() <= vectors {
            return WARPS;
        }
        let chunks = (vectors / (VECTORS * LANES)).max(1);
        1 << chunks.ilog2()
    }

    /// Returns the grid of so many workgroups.
    pub(super) fn grid_of(workgroups: usize) -> Grid {
        Grid { items: workgroups, grain: THREADS }
    }
}

/// A matrix of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatvecMatrix {
    pub(crate) weight: Tensor,
    /// The scales of quantized weights.
    pub(crate) scales: Option<Tensor>,
    /// Without a bias, any tensor.
    pub(crate) bias: Tensor,
    pub(crate) outputs: usize,
    /// The first of the outputs in the weight, its scales and its bias.
    pub(crate) first: usize,
}

/// The row that is multiplied, and its norm: 0 is none, 1 RMS, 2 layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatvecRow {
    pub(crate) x: Tensor,
    pub(crate) norm_weight: Tensor,
    pub(crate) norm_bias: Tensor,
    pub(crate) norm: usize,
    /// 0 is `f32`, 1 bf16, 2 f16.
    pub(crate) norm_type: usize,
    pub(crate) epsilon: F32Bits,
    pub(crate) offset: F32Bits,
}

impl MatvecRow {
    /// Adds the row and the operands of its norm.
    pub(super) fn add_operands(&self, arguments: &mut Arguments) {
        self.x.add_to(arguments, "x");
        self.norm_weight.add_to(arguments, "norm_weight");
        self.norm_bias.add_to(arguments, "norm_bias");
    }

    /// Adds the numbers of its norm.
    pub(super) fn add_numbers(&self, arguments: &mut Arguments) {
        self.norm.add_to(arguments, "norm");
        self.norm_type.add_to(arguments, "norm_type");
        self.epsilon.add_to(arguments, "epsilon");
        self.offset.add_to(arguments, "offset");
    }
}

/// Up to [`MAX_MATRICES`] matrices that are multiplied by one row.
#[derive(Debug, Clone)]
pub(crate) struct MatvecProducts {
    pub(crate) weights: MatvecWeights,
    pub(crate) row: MatvecRow,
    pub(crate) matrices: Vec<MatvecMatrix>,
    pub(crate) inputs: usize,
    pub(crate) bias_type: MatvecBias,
}

impl MatvecProducts {
    /// Returns how many units there are, some outputs or a pair of outputs of two matrices each, which some warps share.
    fn units(&self, form: Form) -> usize {
        let outputs = self.matrices.iter().map(|matrix| matrix.outputs);
        match form {
            Form::Gated => outputs.take(1).sum(),
            _ => outputs.map(|outputs| outputs.div_ceil(self.weights.rows())).sum(),
        }
    }

    /// Returns how many warps share a unit, and the workgroups of a call.
    fn division(&self, form: Form) -> (usize, usize) {
        self.weights.division(self.units(form), self.inputs)
    }
}

/// The biases of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatvecBias {
    None,
    /// 0 is `f32`, 1 bf16, 2 f16.
    Of(usize),
}

impl Argument for MatvecBias {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        let number = match self {
            // The bits of -1.
            Self::None => u32::MAX as usize,
            Self::Of(ty) => ty,
        };
        number.add_to(arguments, name);
    }
}

arguments! {
    /// The activation of an MLP: `kind` is 0 for SiLU, 1 for Swish, 2 for GELU and 3 for its approximation by tanh.
    struct MatvecActivation {
        activation: usize,
        steepness: F32Bits,
    }

    /// The limits of a gated MLP, of which infinity is none, and what is added to `up`.
    struct MatvecGate {
        limit: F32Bits,
        up_offset: F32Bits,
    }
}

/// A call of one of the kernels.
#[derive(Debug, Clone)]
pub(crate) enum Matvec {
    /// The products, one result for each matrix.
    Plain { products: MatvecProducts, outs: Vec<TensorType> },
    /// The activation of the product by one matrix.
    Activated { products: MatvecProducts, out: TensorType, activation: MatvecActivation },
    /// The activation of the product by the first matrix, times that by the second.
    Gated { products: MatvecProducts, out: TensorType, activation: MatvecActivation, gate: MatvecGate },
    /// `residual` and `factor` times the product by one matrix. The row has no norm.
    Added { products: MatvecProducts, residual: Tensor, out: TensorType, factor: F32Bits },
}

impl Matvec {
    /// Returns the workgroups of the call.
    pub(crate) fn grid(&self) -> Grid {
        let (products, form) = self.products();
        MatvecWeights::grid_of(products.division(form).1)
    }

    fn products(&self) -> (&MatvecProducts, Form) {
        match self {
            Self::Plain { products, .. } => (products, Form::Plain(products.matrices.len())),
            Self::Activated { products, .. } => (products, Form::Activated),
            Self::Gated { products, .. } => (products, Form::Gated),
            Self::Added { products, .. } => (products, Form::Added),
        }
    }
}

impl Kernel for Matvec {
    fn function(&self) -> KernelFunction {
        let (products, form) = self.products();
        products.weights.function(form)
    }

    fn arguments(self) -> Arguments {
        const FIRSTS: [&str; MAX_MATRICES] = ["first0", "first1", "first2"];
        let mut arguments = Arguments::default();
        let all = &mut arguments;
        let (products, form) = self.products();
        let MatvecProducts { weights, row, matrices, inputs, bias_type } = products.clone();
        let (split, _) = products.division(form);
        let has_norm = form != Form::Added;
        if has_norm {
            row.add_operands(all)
        } else {
            row.x.add_to(all, "x")
        }
        for (index, MatvecMatrix { weight, scales, bias, outputs, first }) in matrices.into_iter().enumerate()
        {
            weight.add_to(all, WEIGHTS[index]);
            if let Some(scales) = scales {
                scales.add_to(all, SCALES[index]);
            }
            bias.add_to(all, BIASES[index]);
            match form {
                Form::Plain(_) => outputs.add_to(all, OUTPUTS[index]),
                _ if index == 0 => outputs.add_to(all, "n"),
                _ => {}
            }
            first.add_to(all, FIRSTS[index]);
        }
        inputs.add_to(all, "inputs");
        split.add_to(all, "split");
        if has_norm {
            row.add_numbers(all);
        }
        bias_type.add_to(all, "bias_type");
        match self {
            Self::Plain { outs, .. } => {
                outs.into_iter().zip(RESULTS).for_each(|(out, name)| out.add_to(all, name));
            }
            Self::Activated { out, activation, .. } => {
                out.add_to(all, "out");
                activation.add_to(all, "");
            }
            Self::Gated { out, activation, gate, .. } => {
                out.add_to(all, "out");
                activation.add_to(all, "");
                gate.add_to(all, "");
            }
            Self::Added { residual, out, factor, .. } => {
                residual.add_to(all, "residual");
                out.add_to(all, "out");
                factor.add_to(all, "factor");
            }
        }
        weights.add_format(all, inputs);
        arguments
    }
}

#[cfg(test)]
impl MatvecWeights {
    /// Returns weights of every type, in groups of codes of every width.
    pub(super) fn every() -> impl Iterator<Item = Self> {
        use mlxcel_models::FloatCodes;

        use crate::group_form::{GROUP, Groups, KernelsOf, Scales};
        let groups = Groups { size: GROUP, dtype: safetensors::Dtype::F16 };
        let scales = [
            Scales::Symmetric(groups),
            Scales::Zeros(groups),
            Scales::Minima(groups),
            Scales::Superblocks,
            Scales::Halves,
            Scales::ListedBlocks,
            Scales::Floats(FloatCodes::E4m3, groups),
            Scales::Floats(FloatCodes::Nf4, groups),
        ];
        let forms = scales.into_iter().flat_map(|scales| {
            scales.widths(KernelsOf::Gpus).iter().map(move |&bits| Self::Groups(GroupForm { bits, scales }))
        });
        [Self::F32, Self::Bf16, Self::F16, Self::Q8, Self::Q4].into_iter().chain(forms)
    }

    /// Returns the name that kernels have.
    pub(super) fn name(self) -> &'static str {
        self.function(Form::Added).name.rsplit('_').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        for weights in MatvecWeights::every() {
            let function = weights.function(Form::Added).name;
            let found =
                ["threads", "vectors", "matrices", "capacity"].map(|name| stated_constant(function, name));
            let expected = [THREADS, VECTORS, MAX_MATRICES, ROW_CAPACITY];
            assert_eq!(found, expected.map(Some), "{weights:?}");
            let ty = function.rsplit('_').next().unwrap();
            assert_eq!(stated_constant(function, &format!("{ty}_rows")), Some(weights.rows()), "{weights:?}");
        }
    }
}
