//! Forms: how the code of a target reads the weights of matrix products.

use std::collections::BTreeMap;

use mlxcel_artifacts::Quant;
use mlxcel_models::{Coding, Linear, ModelConfig, Numbers, OfGroups, Storage, Weight};
use safetensors::Dtype;

use crate::plan::{Numerics, Plan};

/// How a weight is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As floats. What the checkpoint stores in few bits is decoded.
    Floats,
    /// 8 bits with a scale for each output, see [`Quant::Q8`].
    Rows,
    /// Codes of few bits in groups of inputs.
    Groups(GroupForm),
}

/// Codes of few bits, and what groups of inputs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupForm {
    /// Bits of a code.
    pub bits: usize,
    /// What each group has.
    pub scales: Scales,
}

/// What groups of codes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    /// A scale. Codes are from `-2^(bits - 1)` on.
    Symmetric(Groups),
    /// A scale and a whole number from 0 to 255, which is subtracted from unsigned codes.
    Zeros(Groups),
    /// A scale and what is added at last. Codes are unsigned.
    Minima(Groups),
    /// Each 32 inputs have a scale and a minimum of 6 bits, and each 256 inputs an `f16` unit of either, as in GGUF's `Q4_K`
    /// and `Q5_K`.
    Superblocks,
    /// Each 16 inputs have a scale of 8 bits, and each 256 inputs its `f16` unit, as in GGUF's `Q6_K`.
    Halves,
}

/// Groups of adjacent inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// Inputs of a group: a multiple of [`GROUP`].
    pub size: usize,
    /// The type of scales and minima.
    pub dtype: Dtype,
}

/// Inputs whose products kernels sum in integers.
pub(crate) const GROUP: usize = 32;

/// Inputs of a superblock. The last one of a row may have fewer.
pub(crate) const SUPERBLOCK: usize = 256;

/// What kernels quantize inputs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Activation {
    /// 8 bits with a scale for each row.
    Rows,
    /// 8 bits with a scale for each [`GROUP`] elements.
    Groups,
}

impl GroupForm {
    /// GGUF's `Q4_0`.
    pub const Q4_0: Self =
        Self { bits: 4, scales: Scales::Symmetric(Groups { size: GROUP, dtype: Dtype::F16 }) };

    /// Returns a form that kernels read and that holds every number of a weight exactly.
    ///
    /// `transposed` says that the weight is `[inputs, outputs]`.
    #[must_use]
    pub fn holding(storage: &Storage, columns: usize, transposed: bool) -> Option<Self> {
        let coding = storage.coding.as_ref()?;
        let Numbers::Integers { bits, signed } = coding.numbers else { return None };
        let [1, size] = coding.group else { return None };
        if coding.column_groups.is_some() || coding.transposed != transposed || !columns.is_multiple_of(GROUP)
        {
            return None;
        }
        let dtype = |numbers: &[&OfGroups]| -> Option<Dtype> {
            let exact = numbers.iter().map(|of| match of {
                OfGroups::Numbers(numbers) => Some(storage.exact_dtype(numbers)),
                OfGroups::Steps { .. } => None,
            });
            let all = exact.collect::<Option<Vec<_>>>()?;
            Some(if all.windows(2).all(|pair| pair[0] == pair[1]) { *all.first()? } else { Dtype::F32 })
        };
        let is_whole = size.is_multiple_of(GROUP) && columns.is_multiple_of(size);
        let groups =
            |numbers: &[&OfGroups]| Some(Groups { size, dtype: dtype(numbers).filter(|_| is_whole)? });
        let scales = match coding {
            Coding { minima: Some(minima), zeros: None, scales, .. } if !signed => {
                match (units(scales, Numbers::Integers { bits: 6, signed: false }, storage), minima) {
                    (Some(8), OfGroups::Steps { .. })
                        if size == GROUP
                            && units(minima, Numbers::Integers { bits: 6, signed: false }, storage)
                                == Some(8) =>
                    {
                        Scales::Superblocks
                    }
                    _ => Scales::Minima(groups(&[scales, minima])?),
                }
            }
            Coding { minima: None, scales, .. } if is_centered(coding, bits, signed) => {
                match units(scales, Numbers::Integers { bits: 8, signed: true }, storage) {
                    Some(16) if size == 16 => Scales::Halves,
                    _ => Scales::Symmetric(groups(&[scales])?),
                }
            }
            Coding { minima: None, zeros: Some(_), scales, .. } => Scales::Zeros(groups(&[scales])?),
            _ => return None,
        };
        // The fewest bits that there is a kernel for.
        let widths: &[usize] = match scales {
            Scales::Symmetric(_) => &[4, 5, 8],
            Scales::Zeros(_) => &[4, 8],
            Scales::Minima(_) => &[4, 5, 6, 8],
            Scales::Superblocks => &[4, 5],
            Scales::Halves => &[6],
        };
        let bits = widths.iter().copied().find(|&width| width >= bits)?;
        Some(Self { bits, scales })
    }

    /// Returns the inputs that have scales of their own together: a row has a whole number of them, or less for superblocks.
    pub(crate) fn run(self) -> usize {
        match self.scales {
            Scales::Symmetric(groups) | Scales::Zeros(groups) | Scales::Minima(groups) => groups.size,
            Scales::Superblocks | Scales::Halves => SUPERBLOCK,
        }
    }

    /// Returns the bytes of scales that an output has for each run of inputs.
    pub(crate) fn run_bytes(self) -> usize {
        let number = |groups: Groups| groups.dtype.bitsize() / 8;
        match self.scales {
            Scales::Symmetric(groups) => number(groups),
            Scales::Zeros(groups) => number(groups) + 1,
            Scales::Minima(groups) => 2 * number(groups),
            Scales::Superblocks => 2 + 2 + 12,
            Scales::Halves => 2 + 16,
        }
    }

    /// Returns the bytes of an output with so many inputs.
    #[must_use]
    pub fn row_bytes(self, inputs: usize) -> usize {
        inputs / 8 * self.bits + inputs.div_ceil(self.run()) * self.run_bytes()
    }

    /// Returns a name for recipes.
    pub(crate) fn name(self) -> String {
        let of = |kind: &str, Groups { size, dtype }: Groups| {
            format!("{kind}{size}_{}", format!("{dtype:?}").to_lowercase())
        };
        let scales = match self.scales {
            Scales::Symmetric(groups) => of("symmetric", groups),
            Scales::Zeros(groups) => of("zeros", groups),
            Scales::Minima(groups) => of("minima", groups),
            Scales::Superblocks => "superblocks".into(),
            Scales::Halves => "halves".into(),
        };
        format!("q{}_{scales}", self.bits)
    }
}

/// Returns how many groups share a unit, if groups have such whole numbers of an `f16` unit.
fn units(of_groups: &OfGroups, wanted: Numbers, storage: &Storage) -> Option<usize> {
    let OfGroups::Steps { numbers, sizes, in_block, .. } = of_groups else { return None };
    let fits = match (*numbers, wanted) {
        (Numbers::Integers { bits, signed }, Numbers::Integers { bits: most, signed: any }) => {
            bits <= most && (!signed || any)
        }
        _ => false,
    };
    (fits && storage.exact_dtype(sizes) == Dtype::F16).then_some(*in_block)
}

/// Returns whether half of the codes are negative, less their zero point.
fn is_centered(coding: &Coding, bits: usize, signed: bool) -> bool {
    let half = if signed { 0.0 } else { 2f32.powi(i32::try_from(bits).unwrap_or(0) - 1) };
    match &coding.zeros {
        None => half == 0.0,
        Some(zeros) => zeros.as_number() == Some(half),
    }
}

/// The forms of a model's weights.
#[derive(Debug, Clone)]
pub struct Forms {
    /// By the names of all weights of matrix products.
    forms: BTreeMap<String, Form>,
    /// The type that such weights have if they are decoded.
    decoded: Dtype,
}

impl Forms {
    /// Chooses the form of every weight of matrix products.
    #[must_use]
    pub fn new(model: &ModelConfig, plan: &Plan, storage_of: &dyn Fn(&Weight) -> Storage) -> Self {
        let forms = weights(model).into_iter().map(|(weight, inputs, transposed)| {
            let held = || {
                let form = GroupForm::holding(&storage_of(weight), inputs, transposed)?;
                is_read(form, plan.numerics).then_some(Form::Groups(form))
            };
            let form = match plan.quant {
                Quant::None => Form::Floats,
                Quant::Q8 => Form::Rows,
                Quant::Q4 => Form::Groups(GroupForm::Q4_0),
                Quant::Auto => held().unwrap_or(Form::Floats),
            };
            (weight.name.clone(), form)
        });
        let decoded = if plan.quant == Quant::Auto { plan.precision.dtype() } else { Dtype::F32 };
        Self { forms: forms.collect(), decoded }
    }

    /// Returns the form of a weight.
    #[must_use]
    pub fn of(&self, weight: &Weight) -> Form {
        self.forms.get(&weight.name).copied().unwrap_or(Form::Floats)
    }

    /// Returns the type that a weight of few bits is decoded to.
    pub(crate) fn decoded_dtype(&self, weight: &Weight) -> Dtype {
        if self.forms.contains_key(&weight.name) { self.decoded } else { Dtype::F32 }
    }

    /// Returns what the inputs of most quantized weights are quantized to.
    pub(crate) fn activation(&self) -> Option<Activation> {
        let is_of_groups = self.forms.values().any(|form| matches!(form, Form::Groups(_)));
        let is_of_rows = self.forms.values().any(|form| *form == Form::Rows);
        match (is_of_groups, is_of_rows) {
            (true, _) => Some(Activation::Groups),
            (false, true) => Some(Activation::Rows),
            (false, false) => None,
        }
    }
}

/// Returns whether a target's code reads a form.
fn is_read(form: GroupForm, numerics: Numerics) -> bool {
    form == GroupForm::Q4_0 && !numerics.floats_as_bits
}

/// Returns every weight of matrix products with its inputs, and whether it has them first.
fn weights(model: &ModelConfig) -> Vec<(&Weight, usize, bool)> {
    let embedding = (&model.embedding.weight, model.hidden, false);
    let of_linear = |linear: &Linear| (linear.inputs(), linear.transposed);
    let linears = model.linears().map(|linear| {
        let (inputs, transposed) = of_linear(linear);
        (&linear.weight, inputs, transposed)
    });
    // The weight of a tied head is the embedding's.
    [embedding].into_iter().chain(linears).collect()
}
