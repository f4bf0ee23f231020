//! Codes of few bits in groups of inputs: the forms that kernels read, and which of them holds a stored weight.

use mlxcel_models::{Coding, FloatCodes, IQ4, Numbers, OfGroups, Storage, TWICE_E2M1};
use safetensors::Dtype;

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
    /// Each 16 inputs have a scale of 8 bits, and each 256 inputs its `f16` unit, as in GGUF's `Q3_K` and `Q6_K`.
    Halves,
    /// Each 16 inputs have a scale and a minimum of 4 bits, and each 256 inputs an `f16` unit of either, as in GGUF's `Q2_K`.
    /// Codes are unsigned.
    HalfMinima,
    /// A scale. Codes look up numbers of a list.
    Listed(List, Groups),
    /// A scale. Codes are floating-point numbers, which multiply floats. The last group of a row may be smaller. `F8_E4M3` is
    /// the type of scales that are E4M3 of a unit, which 16 groups share.
    Floats(FloatCodes, Groups),
    /// Codes look up numbers of [`List::Iq4`]. Each 32 inputs have a scale of 8 bits, and each 256 inputs its `f16` unit, as
    /// in GGUF's `IQ4_XS`.
    ListedBlocks,
    /// Codes look up numbers of [`List::E2m1`]. Each 16 inputs have a scale in E4M3, and each 256 inputs its `f32` unit, as in
    /// NVFP4. Kernels of GPUs read that as [`Scales::Floats`].
    ListedHalves,
}

/// The 16 numbers that codes of 4 bits look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Those of MXFP4, doubled.
    E2m1,
    /// Those of GGUF's `IQ4_NL` and `IQ4_XS`.
    Iq4,
}

/// Groups of adjacent inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// Inputs of a group: a multiple of 32, unless codes are floating-point numbers.
    pub size: usize,
    /// The type of scales and minima. `F8_E8M0`, of [`List::E2m1`] alone, are exponents of powers of two; CPUs' kernels read no
    /// others of that list.
    pub dtype: Dtype,
}

/// Inputs whose products kernels sum in integers.
pub(crate) const GROUP: usize = 32;

/// Inputs of half a group.
const HALF: usize = GROUP / 2;

/// Inputs of a superblock. The last one of a row may have fewer.
pub(crate) const SUPERBLOCK: usize = 256;

/// Inputs that have their floats of 4 bits in the same bytes: `INPUTS` of `cpu/f4.h`.
pub(crate) const INPUTS_OF_4_BITS: usize = 4;

/// Groups that share a unit of their scales.
pub(crate) const UNIT_GROUPS: usize = 16;

/// Whose kernels read a form. Those of GPUs read 4 bits and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelsOf {
    /// CPUs' kernels.
    Cpus,
    /// GPUs' kernels.
    Gpus,
}

impl List {
    pub(crate) const ALL: [Self; 2] = [Self::E2m1, Self::Iq4];

    /// Returns the numbers, as `groups.h` has them.
    pub(crate) fn numbers(self) -> [f32; 16] {
        let numbers = match self {
            Self::E2m1 => TWICE_E2M1,
            Self::Iq4 => IQ4,
        };
        numbers.map(f32::from)
    }

    /// Returns the name.
    fn name(self) -> &'static str {
        match self {
            Self::E2m1 => "e2m1_",
            Self::Iq4 => "iq4_",
        }
    }
}

impl Scales {
    /// Returns the list that codes look up.
    pub(crate) fn list(self) -> Option<List> {
        match self {
            Self::Listed(list, _) => Some(list),
            Self::ListedBlocks => Some(List::Iq4),
            Self::ListedHalves => Some(List::E2m1),
            _ => None,
        }
    }

    /// Returns the bits of the codes that there are kernels for, ascending.
    pub(crate) fn widths(self, kernels: KernelsOf) -> &'static [usize] {
        let all: &[usize] = match self {
            Self::Symmetric(_) => &[4, 5, 8],
            Self::Listed(..) | Self::ListedBlocks | Self::ListedHalves => &[4],
            Self::Zeros(_) => &[2, 3, 4, 8],
            Self::Minima(_) => &[2, 3, 4, 5, 6, 8],
            Self::Superblocks => &[4, 5],
            Self::Halves => &[3, 6],
            Self::HalfMinima => &[2],
            Self::Floats(FloatCodes::E4m3, _) => &[8],
            Self::Floats(..) => &[4],
        };
        let first = match kernels {
            KernelsOf::Cpus => 0,
            KernelsOf::Gpus => all.partition_point(|&bits| bits < 4),
        };
        all.get(first..).unwrap_or_default()
    }
}

impl GroupForm {
    /// GGUF's `Q4_0`.
    pub const Q4_0: Self =
        Self { bits: 4, scales: Scales::Symmetric(Groups { size: GROUP, dtype: Dtype::F16 }) };

    /// Returns a form that such kernels read and that holds every number of a weight exactly, with inputs in the order of
    /// [`Storage::order`].
    ///
    /// `transposed` says that the weight is `[inputs, outputs]`.
    #[must_use]
    pub fn holding(storage: &Storage, columns: usize, transposed: bool, kernels: KernelsOf) -> Option<Self> {
        let whole = Self::of_whole_numbers(storage, columns, transposed, kernels);
        whole.or_else(|| {
            let coding = storage.coding.as_ref()?;
            let form = Self::of_floats(storage, coding, columns)?;
            let form = if kernels == KernelsOf::Cpus { form.in_halves(columns) } else { form };
            let is_read = kernels == KernelsOf::Cpus || form.has_gpu_floats(columns);
            (coding.transposed == transposed && is_read).then_some(form)
        })
    }

    /// Returns the form whose numbers kernels sum in integers, if there is one for codes that are floats.
    fn in_halves(self, columns: usize) -> Self {
        match self.scales {
            Scales::Floats(FloatCodes::E2m1, Groups { size: HALF, dtype: Dtype::F8_E4M3 })
                if columns.is_multiple_of(GROUP) =>
            {
                Self { scales: Scales::ListedHalves, ..self }
            }
            _ => self,
        }
    }

    fn of_whole_numbers(
        storage: &Storage,
        columns: usize,
        transposed: bool,
        kernels: KernelsOf,
    ) -> Option<Self> {
        let coding = &storage.coding.as_ref()?.in_whole_numbers()?;
        let Numbers::Integers { bits, signed } = coding.numbers else { return None };
        let [1, size] = coding.group else { return None };
        let is_adjacent = coding.column_groups.is_none() || storage.order.is_some();
        if !is_adjacent || coding.transposed != transposed || !columns.is_multiple_of(GROUP) {
            return None;
        }
        let dtype = |numbers: &[&OfGroups]| {
            let mut exact = numbers.iter().map(|of| match of {
                OfGroups::Numbers(numbers) => storage.exact_dtype(numbers),
                // Steps of few bits, times a unit in half precision.
                OfGroups::Steps { .. } => Dtype::F32,
            });
            let first = exact.next().unwrap_or(Dtype::F32);
            if exact.all(|dtype| dtype == first) { first } else { Dtype::F32 }
        };
        let is_whole = size.is_multiple_of(GROUP) && columns.is_multiple_of(size);
        let groups = |numbers: &[&OfGroups]| is_whole.then(|| Groups { size, dtype: dtype(numbers) });
        let scales = match coding {
            Coding { minima: Some(minima), zeros: None, scales, .. } if !signed => {
                let both_have = |bits: usize, in_block: usize| {
                    let has = |of: &OfGroups| units(of, (bits, false), storage) == Some(in_block);
                    has(scales) && has(minima)
                };
                if bits <= 5 && size == GROUP && both_have(6, SUPERBLOCK / GROUP) {
                    Scales::Superblocks
                } else if size == HALF && both_have(4, SUPERBLOCK / HALF) {
                    Scales::HalfMinima
                } else {
                    Scales::Minima(groups(&[scales, minima])?)
                }
            }
            Coding { minima: None, scales, .. } if is_centered(coding, bits, signed) => {
                let in_block = units(scales, (8, true), storage);
                let list = List::ALL.into_iter().find(|list| coding.list() == Some(&list.numbers()[..]));
                let are_powers = matches!(scales, OfGroups::Numbers(numbers) if numbers.is_power_of_two());
                match list {
                    Some(List::E2m1) if are_powers => {
                        let groups = groups(&[scales])?;
                        Scales::Listed(List::E2m1, Groups { dtype: Dtype::F8_E8M0, ..groups })
                    }
                    Some(List::E2m1) if kernels == KernelsOf::Cpus => Scales::Symmetric(groups(&[scales])?),
                    Some(List::Iq4) if size == GROUP && in_block == Some(SUPERBLOCK / GROUP) => {
                        Scales::ListedBlocks
                    }
                    Some(list) => Scales::Listed(list, groups(&[scales])?),
                    None if size == HALF && in_block == Some(SUPERBLOCK / HALF) => Scales::Halves,
                    // No kernel reads these narrow codes without zero points.
                    None if bits < 4 && kernels == KernelsOf::Cpus => Scales::Zeros(groups(&[scales])?),
                    None => Scales::Symmetric(groups(&[scales])?),
                }
            }
            Coding { minima: None, zeros: Some(_), scales, .. } => Scales::Zeros(groups(&[scales])?),
            _ => return None,
        };
        // Places in a list have fewer bits than its numbers.
        let bits = scales.list().map_or(bits, |list| list.numbers().len().ilog2() as usize);
        // The fewest bits that there is a kernel for.
        let bits = scales.widths(kernels).iter().copied().find(|&width| width >= bits)?;
        Some(Self { bits, scales })
    }

    /// Returns the form of codes that are floating-point numbers, which have scales for blocks of any size.
    fn of_floats(storage: &Storage, coding: &Coding, columns: usize) -> Option<Self> {
        let codes = coding.float_codes()?;
        let Coding { group: [_, size], column_groups: None, zeros: None, minima: None, .. } = coding else {
            return None;
        };
        let OfGroups::Numbers(scales) = &coding.scales else { return None };
        let size = (*size).min(columns);
        // Bytes have the codes of as many inputs, of one group.
        let is_whole = size.is_multiple_of(INPUTS_OF_4_BITS) && columns.is_multiple_of(size);
        if codes.bits() == 4 && !is_whole {
            return None;
        }
        let dtype = match scales.in_e4m3() {
            Some(_) => Dtype::F8_E4M3,
            None => storage.exact_dtype(scales),
        };
        Some(Self { bits: codes.bits(), scales: Scales::Floats(codes, Groups { size, dtype }) })
    }

    /// Returns whether GPUs' kernels read codes that are floats: in groups that are runs of 32 inputs or rows, or of 4 bits in half
    /// of that with scales in E4M3.
    fn has_gpu_floats(self, columns: usize) -> bool {
        let Scales::Floats(codes, Groups { size, dtype }) = self.scales else { return false };
        let is_run = match dtype {
            Dtype::F8_E4M3 => size == GROUP / 2 && codes.bits() == 4,
            _ => size == columns || size.is_multiple_of(GROUP),
        };
        is_run && columns.is_multiple_of(GROUP)
    }

    /// Returns whether kernels multiply floats by it, and not whole numbers.
    pub(crate) fn takes_floats(self) -> bool {
        matches!(self.scales, Scales::Floats(..))
    }

    /// Returns whether it is the form that kernels read a stored weight in.
    pub(crate) fn is_held_by(self, storage: &Storage, columns: usize, transposed: bool) -> bool {
        let held = |kernels| Self::holding(storage, columns, transposed, kernels) == Some(self);
        held(KernelsOf::Cpus) || held(KernelsOf::Gpus)
    }

    /// Returns the inputs that have scales of their own together: a row has a whole number of them, or less for superblocks.
    pub(crate) fn run(self) -> usize {
        match self.scales {
            Scales::Floats(_, Groups { size, dtype: Dtype::F8_E4M3 }) => UNIT_GROUPS * size,
            Scales::Symmetric(groups)
            | Scales::Zeros(groups)
            | Scales::Minima(groups)
            | Scales::Floats(_, groups)
            | Scales::Listed(_, groups) => groups.size,
            Scales::Superblocks
            | Scales::Halves
            | Scales::HalfMinima
            | Scales::ListedBlocks
            | Scales::ListedHalves => SUPERBLOCK,
        }
    }

    /// Returns the bytes of scales that an output has for each run of inputs.
    pub(crate) fn run_bytes(self) -> usize {
        let number = |groups: Groups| groups.dtype.bitsize() / 8;
        match self.scales {
            Scales::Floats(_, Groups { dtype: Dtype::F8_E4M3, .. }) => size_of::<f32>() + UNIT_GROUPS,
            Scales::Symmetric(groups) | Scales::Floats(_, groups) | Scales::Listed(_, groups) => {
                number(groups)
            }
            Scales::Zeros(groups) => number(groups) + 1,
            Scales::Minima(groups) => 2 * number(groups),
            Scales::Superblocks => 2 + 2 + 12,
            Scales::Halves => 2 + 16,
            Scales::HalfMinima => 2 + 2 + 16,
            Scales::ListedBlocks => 2 + 8,
            Scales::ListedHalves => size_of::<f32>() + UNIT_GROUPS,
        }
    }

    /// Returns the bits of a weight with its part of the scales, if superblocks are full.
    #[must_use]
    pub fn bits_per_weight(self) -> f64 {
        let run = self.run();
        self.row_bytes(run) as f64 * 8.0 / run as f64
    }

    /// Returns the bytes of an output with so many inputs.
    #[must_use]
    pub fn row_bytes(self, inputs: usize) -> usize {
        inputs * self.bits / 8 + inputs.div_ceil(self.run()) * self.run_bytes()
    }

    /// Returns the name: bits, what groups have, and the groups' size and type.
    #[must_use]
    pub fn name(self) -> String {
        let of = |kind: &str, Groups { size, dtype }: Groups| {
            format!("{kind}{size}_{}", format!("{dtype:?}").to_lowercase())
        };
        let scales = match self.scales {
            Scales::Symmetric(groups) => of("symmetric", groups),
            Scales::Zeros(groups) => of("zeros", groups),
            Scales::Minima(groups) => of("minima", groups),
            Scales::Superblocks => "superblocks".into(),
            Scales::Halves => "halves".into(),
            Scales::HalfMinima => "half_minima".into(),
            Scales::Floats(codes, groups) => of(name_of(codes), groups),
            Scales::Listed(list, groups) => of(list.name(), groups),
            Scales::ListedBlocks => "iq4_blocks".into(),
            Scales::ListedHalves => "e2m1_halves".into(),
        };
        format!("q{}_{scales}", self.bits)
    }
}

/// Returns the name of codes, before the size of groups.
fn name_of(codes: FloatCodes) -> &'static str {
    match codes {
        FloatCodes::E4m3 => "e4m3_",
        FloatCodes::E2m1 => "e2m1_floats_",
        FloatCodes::Nf4 => "nf4_",
        FloatCodes::Fp4 => "fp4_",
    }
}

/// Returns how many groups share a unit, if groups have whole numbers of an `f16` unit, of at most so many bits.
fn units(of_groups: &OfGroups, (most, may_be_signed): (usize, bool), storage: &Storage) -> Option<usize> {
    let OfGroups::Steps { numbers: Numbers::Integers { bits, signed }, sizes, in_block, .. } = of_groups
    else {
        return None;
    };
    // An unsigned number needs one more bit if there is a sign.
    let fits =
        if *signed { may_be_signed && *bits <= most } else { bits + usize::from(may_be_signed) <= most };
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

#[cfg(test)]
mod tests;
