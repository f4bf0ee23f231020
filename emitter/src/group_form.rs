//! Codes of few bits in groups of inputs: the forms that kernels read, and which of them holds a stored weight.

use mlxcel_models::{Coding, IQ4, Numbers, OfGroups, Storage, TWICE_E2M1};
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
    /// A scale. Codes are floating-point numbers of 8 bits, E4M3, which multiply floats. The last group of a row may be smaller.
    E4m3(Groups),
    /// Codes look up numbers of [`List::Iq4`]. Each 32 inputs have a scale of 8 bits, and each 256 inputs its `f16` unit, as
    /// in GGUF's `IQ4_XS`.
    ListedBlocks,
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
    /// Inputs of a group: a multiple of 32.
    pub size: usize,
    /// The type of scales and minima. CPUs' kernels read the scales of [`List::E2m1`] as exponents, `F8_E8M0`.
    pub dtype: Dtype,
}

/// Inputs whose products kernels sum in integers.
pub(crate) const GROUP: usize = 32;

/// Inputs of a superblock. The last one of a row may have fewer.
pub(crate) const SUPERBLOCK: usize = 256;

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
            _ => None,
        }
    }

    /// Returns the bits of the codes that there are kernels for, ascending.
    pub(crate) fn widths(self, kernels: KernelsOf) -> &'static [usize] {
        let all: &[usize] = match self {
            Self::Symmetric(_) => &[4, 5, 8],
            Self::Listed(..) | Self::ListedBlocks => &[4],
            Self::Zeros(_) => &[2, 3, 4, 8],
            Self::Minima(_) => &[2, 3, 4, 5, 6, 8],
            Self::Superblocks => &[4, 5],
            Self::Halves => &[3, 6],
            Self::HalfMinima => &[2],
            Self::E4m3(_) => &[8],
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
        let coding = storage.coding.as_ref()?;
        if coding.is_e4m3() {
            let form = Self::of_e4m3(storage, coding, columns);
            return form.filter(|_| coding.transposed == transposed && kernels == KernelsOf::Cpus);
        }
        let coding = &coding.in_whole_numbers()?;
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
        const HALF: usize = GROUP / 2;
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
                match list {
                    Some(List::E2m1) if kernels == KernelsOf::Cpus => match scales {
                        OfGroups::Numbers(numbers) if numbers.is_power_of_two() => {
                            let groups = groups(&[scales])?;
                            Scales::Listed(List::E2m1, Groups { dtype: Dtype::F8_E8M0, ..groups })
                        }
                        _ => Scales::Symmetric(groups(&[scales])?),
                    },
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

    /// Returns the form of codes in E4M3, which have scales for blocks of any size.
    fn of_e4m3(storage: &Storage, coding: &Coding, columns: usize) -> Option<Self> {
        let Coding { group: [_, size], column_groups: None, zeros: None, minima: None, .. } = coding else {
            return None;
        };
        let OfGroups::Numbers(scales) = &coding.scales else { return None };
        let dtype = storage.exact_dtype(scales);
        Some(Self { bits: 8, scales: Scales::E4m3(Groups { size: (*size).min(columns), dtype }) })
    }

    /// Returns whether kernels multiply floats by it, and not whole numbers.
    pub(crate) fn takes_floats(self) -> bool {
        matches!(self.scales, Scales::E4m3(_))
    }

    /// Returns whether it is the form that kernels read a stored weight in.
    pub(crate) fn is_held_by(self, storage: &Storage, columns: usize, transposed: bool) -> bool {
        let held = |kernels| Self::holding(storage, columns, transposed, kernels) == Some(self);
        held(KernelsOf::Cpus) || held(KernelsOf::Gpus)
    }

    /// Returns the inputs that have scales of their own together: a row has a whole number of them, or less for superblocks.
    pub(crate) fn run(self) -> usize {
        match self.scales {
            Scales::Symmetric(groups)
            | Scales::Zeros(groups)
            | Scales::Minima(groups)
            | Scales::E4m3(groups)
            | Scales::Listed(_, groups) => groups.size,
            Scales::Superblocks | Scales::Halves | Scales::HalfMinima | Scales::ListedBlocks => SUPERBLOCK,
        }
    }

    /// Returns the bytes of scales that an output has for each run of inputs.
    pub(crate) fn run_bytes(self) -> usize {
        let number = |groups: Groups| groups.dtype.bitsize() / 8;
        match self.scales {
            Scales::Symmetric(groups) | Scales::E4m3(groups) | Scales::Listed(_, groups) => number(groups),
            Scales::Zeros(groups) => number(groups) + 1,
            Scales::Minima(groups) => 2 * number(groups),
            Scales::Superblocks => 2 + 2 + 12,
            Scales::Halves => 2 + 16,
            Scales::HalfMinima => 2 + 2 + 16,
            Scales::ListedBlocks => 2 + 8,
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
            Scales::E4m3(groups) => of("e4m3_", groups),
            Scales::Listed(list, groups) => of(list.name(), groups),
            Scales::ListedBlocks => "iq4_blocks".into(),
        };
        format!("q{}_{scales}", self.bits)
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
mod tests {
    use mlxcel_models::{Expr, StoredTensor, e4m3};

    use super::*;

    /// Returns a weight with 512 inputs, whose scales are the stored tensor 1, and numbers the tensor 0.
    fn storage(bits: usize, signed: bool, size: usize, scale: Dtype) -> (Storage, Expr) {
        let tensor =
            |name: &str, dtype, columns| StoredTensor { name: name.into(), dtype, shape: vec![8, columns] };
        let scales = Expr::Stored(1).floats();
        let coding = Coding {
            codes: Expr::Stored(0).integers(),
            numbers: Numbers::Integers { bits, signed },
            group: [1, size],
            column_groups: None,
            scales: OfGroups::Numbers(scales.clone()),
            zeros: None,
            minima: None,
            transposed: false,
        };
        let tensors = vec![tensor("w", Dtype::I8, 512), tensor("s", scale, 512 / size)];
        (Storage { tensors, coding: Some(coding), order: None }, scales)
    }

    /// Returns the name of the form that holds a weight after a change.
    fn held(
        (mut storage, scales): (Storage, Expr),
        change: impl FnOnce(&mut Coding, Expr),
    ) -> Option<String> {
        change(storage.coding.as_mut().unwrap(), scales);
        GroupForm::holding(&storage, 512, false, KernelsOf::Cpus).map(GroupForm::name)
    }

    /// Returns steps of so many bits, whose units are the scales.
    fn steps(bits: usize, signed: bool, in_block: usize, sizes: Expr) -> OfGroups {
        let numbers = Numbers::Integers { bits, signed };
        OfGroups::Steps { steps: Expr::Stored(0).integers(), numbers, sizes, in_block }
    }

    #[test]
    fn codes_with_scales_are_held_by_the_narrowest_kernel() {
        let symmetric = |bits, size, dtype| held(storage(bits, true, size, dtype), |_, _| {});
        assert_eq!(symmetric(4, 32, Dtype::F16).as_deref(), Some("q4_symmetric32_f16"));
        assert_eq!(GroupForm::Q4_0.name(), "q4_symmetric32_f16");
        assert_eq!(symmetric(3, 128, Dtype::BF16).as_deref(), Some("q3_zeros128_bf16"));
        assert_eq!(symmetric(6, 512, Dtype::F32).as_deref(), Some("q8_symmetric512_f32"));
        let zeros =
            |bits| held(storage(bits, false, 64, Dtype::F16), |coding, scales| coding.zeros = Some(scales));
        assert_eq!(zeros(5).as_deref(), Some("q8_zeros64_f16"));
        let minima = held(storage(6, false, 64, Dtype::BF16), |coding, scales| {
            coding.minima = Some(OfGroups::Numbers(scales));
        });
        assert_eq!(minima.as_deref(), Some("q6_minima64_bf16"));
        assert_eq!(zeros(3).as_deref(), Some("q3_zeros64_f16"));
        let (of_two, _) = storage(2, false, 64, Dtype::F16);
        let zero_of_one = |coding: &Coding| Coding { zeros: Some(Expr::number(1.0)), ..coding.clone() };
        let of_two = Storage { coding: of_two.coding.as_ref().map(zero_of_one), ..of_two };
        let by = |kernels| GroupForm::holding(&of_two, 512, false, kernels).map(GroupForm::name);
        assert_eq!(by(KernelsOf::Cpus).as_deref(), Some("q2_zeros64_f16"));
        assert_eq!(by(KernelsOf::Gpus).as_deref(), Some("q4_zeros64_f16"));
        // The middle of unsigned codes is a zero point of symmetric ones.
        let middle = |zero| {
            held(storage(4, false, 32, Dtype::F16), |coding, _| coding.zeros = Some(Expr::number(zero)))
        };
        assert_eq!(middle(8.0).as_deref(), Some("q4_symmetric32_f16"));
        assert_eq!(middle(7.0).as_deref(), Some("q4_zeros32_f16"));
    }

    #[test]
    fn steps_of_units_are_held_as_superblocks() {
        let superblocks = |bits, in_block| {
            held(storage(bits, false, 32, Dtype::F16), |coding, units| {
                let below = units.clone().times(Expr::number(-1.0));
                coding.scales = steps(6, false, in_block, units);
                coding.minima = Some(steps(6, false, in_block, below));
            })
        };
        assert_eq!(superblocks(4, 8).as_deref(), Some("q4_superblocks"));
        assert_eq!(superblocks(5, 8).as_deref(), Some("q5_superblocks"));
        // Others have numbers of their own for each group.
        assert_eq!(superblocks(6, 8).as_deref(), Some("q6_minima32_f32"));
        assert_eq!(superblocks(4, 4).as_deref(), Some("q4_minima32_f32"));
        let halves = |steps: &dyn Fn(Expr) -> OfGroups, dtype| {
            held(storage(6, true, 16, dtype), |coding, units| coding.scales = steps(units))
        };
        assert_eq!(halves(&|units| steps(8, true, 16, units), Dtype::F16).as_deref(), Some("q6_halves"));
        let narrow = |size| {
            held(storage(3, true, size, Dtype::F16), |coding, units| {
                coding.scales = steps(6, true, 16, units)
            })
        };
        assert_eq!(narrow(16).as_deref(), Some("q3_halves"));
        let with_minima = |bits| {
            held(storage(2, false, 16, Dtype::F16), |coding, units| {
                coding.scales = steps(bits, false, 16, units.clone());
                coding.minima = Some(steps(bits, false, 16, units));
            })
        };
        assert_eq!(with_minima(4).as_deref(), Some("q2_half_minima"));
        assert_eq!(with_minima(5), None);
        // An unsigned byte does not fit a signed one, and units are half precision.
        assert_eq!(halves(&|units| steps(8, false, 16, units), Dtype::F16), None);
        assert_eq!(halves(&|units| steps(8, true, 16, units), Dtype::F32), None);
    }

    #[test]
    fn codes_that_look_up_known_numbers_are_held_as_they_are() {
        let looked_up = |numbers: &[f32], units: bool| {
            let list = Expr::Constant(numbers.to_vec());
            held(storage(4, true, 32, Dtype::F16), |coding, sizes| {
                coding.codes = Expr::Stored(0).unpack(4).lookup(list);
                coding.numbers = Numbers::Floats { bits: 4 };
                if units {
                    coding.scales = steps(6, true, 8, sizes);
                }
            })
        };
        let [e2m1, iq4] = List::ALL.map(List::numbers);
        // CPUs' kernels read powers of two as scales of this list.
        assert_eq!(looked_up(&e2m1, false).as_deref(), Some("q5_symmetric32_f16"));
        let powers = Expr::Constant(vec![0.5, 1.0, 2.0]);
        let with_powers = held(storage(4, true, 32, Dtype::U8), |coding, steps| {
            coding.codes = Expr::Stored(0).unpack(4).lookup(Expr::Constant(e2m1.to_vec()));
            coding.numbers = Numbers::Floats { bits: 4 };
            coding.scales = OfGroups::Numbers(steps.lookup(powers));
        });
        assert_eq!(with_powers.as_deref(), Some("q4_e2m1_32_f8_e8m0"));
        assert_eq!(looked_up(&iq4, false).as_deref(), Some("q4_iq4_32_f16"));
        assert_eq!(looked_up(&iq4, true).as_deref(), Some("q4_iq4_blocks"));
        // No kernel has this list, but one reads integers of 5 bits.
        let mut others = e2m1;
        others[7] = 10.0;
        assert_eq!(looked_up(&others, false).as_deref(), Some("q5_symmetric32_f16"));
    }

    #[test]
    fn floats_of_eight_bits_are_held_in_blocks_of_any_size() {
        let stored = |group: [usize; 2], numbers: Expr| {
            let (mut storage, scales) = storage(8, true, 128, Dtype::BF16);
            let coding = storage.coding.as_mut().unwrap();
            coding.codes = Expr::Stored(0).unpack(8).lookup(numbers);
            (coding.numbers, coding.group) = (Numbers::Floats { bits: 8 }, group);
            coding.scales = OfGroups::Numbers(scales);
            storage
        };
        let held = |storage: &Storage, columns, kernels| {
            GroupForm::holding(storage, columns, false, kernels).map(GroupForm::name)
        };
        let blocks = stored([128, 128], e4m3());
        assert_eq!(held(&blocks, 500, KernelsOf::Cpus).as_deref(), Some("q8_e4m3_128_bf16"));
        assert_eq!(held(&blocks, 500, KernelsOf::Gpus), None);
        let of_tensor = stored([8, 512], e4m3());
        assert_eq!(held(&of_tensor, 512, KernelsOf::Cpus).as_deref(), Some("q8_e4m3_512_bf16"));
        let others = Expr::Constant((0u8..=255).map(f32::from).map(f32::sqrt).collect());
        assert_eq!(held(&stored([1, 128], others), 512, KernelsOf::Cpus), None);
    }

    #[test]
    fn what_no_kernel_holds_exactly_is_decoded() {
        type Change = fn(&mut Coding, Expr);
        let changes: [Change; 5] = [
            |coding, _| coding.numbers = Numbers::Floats { bits: 4 },
            |coding, _| coding.group = [2, 32],
            |coding, _| coding.group = [1, 16],
            |coding, index| coding.column_groups = Some(index),
            |coding, _| coding.transposed = true,
        ];
        for change in changes {
            assert_eq!(held(storage(4, true, 32, Dtype::F16), change), None);
        }
        let (plain, _) = storage(4, true, 32, Dtype::F16);
        assert_eq!(GroupForm::holding(&Storage { coding: None, ..plain }, 512, false, KernelsOf::Cpus), None);
    }
}
