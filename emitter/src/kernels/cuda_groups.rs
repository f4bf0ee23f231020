//! The layout of weights in groups on GPUs: `cuda/groups.h`.

use safetensors::Dtype;

use super::{
    arguments::{Argument as _, Arguments},
    groups::{FloatFormat, GroupFormat},
};
use crate::group_form::{GROUP, GroupForm, Groups, SUPERBLOCK, Scales};

/// The bytes of a word.
const WORD: usize = 4;

/// The shift of groups that makes all of a row one run.
const WHOLE_ROW: usize = 31;

/// Where what groups have is, in words of a row of so many inputs: planes, firsts and seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CudaGroups {
    pub(crate) form: GroupForm,
    pub(crate) inputs: usize,
}

/// Numbers of a row, of so many bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupNumbers {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    /// The logarithm of how many groups share a number.
    shift: usize,
}

impl GroupNumbers {
    /// Returns the words that they take.
    pub(crate) fn words(self) -> usize {
        (self.count * self.bytes).div_ceil(WORD)
    }
}

impl CudaGroups {
    fn groups(self) -> usize {
        self.inputs / GROUP
    }

    /// Returns how many words of a group have the fifth bit of its codes, or the fifth and the sixth.
    pub(crate) fn planes(self) -> usize {
        match self.form.bits {
            5 => 1,
            6 => 2,
            _ => 0,
        }
    }

    /// Returns the inputs of a run: as many as a power of two of groups, or all. What a group of another size has is repeated.
    pub(crate) fn run(self) -> usize {
        match self.form.scales {
            Scales::Symmetric(of)
            | Scales::Zeros(of)
            | Scales::Minima(of)
            | Scales::Floats(_, of)
            | Scales::Listed(_, of) => {
                if of.size == self.inputs {
                    of.size
                } else {
                    GROUP << (of.size / GROUP).trailing_zeros()
                }
            }
            Scales::Superblocks
            | Scales::Halves
            | Scales::HalfMinima
            | Scales::ListedBlocks
            | Scales::ListedHalves => SUPERBLOCK,
        }
    }

    /// Returns whether scales are E4M3 of a unit, which all of a row has.
    pub(crate) fn has_unit(self) -> bool {
        matches!(self.form.scales, Scales::Floats(_, Groups { dtype: Dtype::F8_E4M3, .. }))
    }

    /// Returns the numbers of runs.
    fn of_runs(self, bytes: usize) -> GroupNumbers {
        let run = self.run();
        let is_row = run == self.inputs && !run.is_power_of_two();
        let shift = if is_row { WHOLE_ROW } else { (run / GROUP).ilog2() as usize };
        GroupNumbers { count: self.inputs.div_ceil(run), bytes, shift }
    }

    /// Returns the numbers of groups.
    fn of_groups(self, bytes: usize) -> GroupNumbers {
        GroupNumbers { count: self.groups(), bytes, shift: 0 }
    }

    /// Returns the first numbers that groups have: scales or units.
    pub(crate) fn firsts(self) -> GroupNumbers {
        let size = |Groups { dtype, .. }: Groups| dtype.bitsize() / 8;
        if self.has_unit() {
            return GroupNumbers { count: 1, bytes: size_of::<f32>(), shift: WHOLE_ROW };
        }
        self.of_runs(match self.form.scales {
            Scales::Symmetric(of)
            | Scales::Zeros(of)
            | Scales::Minima(of)
            | Scales::Floats(_, of)
            | Scales::Listed(_, of) => size(of),
            // No kernel of GPUs reads minima of halves, nor floats as whole numbers.
            Scales::Superblocks | Scales::HalfMinima | Scales::ListedHalves => 2 * Dtype::F16.bitsize() / 8,
            Scales::Halves | Scales::ListedBlocks => Dtype::F16.bitsize() / 8,
        })
    }

    /// Returns the second numbers, if there are any.
    pub(crate) fn seconds(self) -> Option<GroupNumbers> {
        match self.form.scales {
            Scales::Floats(..) if self.has_unit() => Some(self.of_groups(2)),
            Scales::Symmetric(_) | Scales::Floats(..) | Scales::Listed(..) => None,
            Scales::Zeros(_) => Some(self.of_runs(1)),
            Scales::Minima(of) => Some(self.of_runs(of.dtype.bitsize() / 8)),
            Scales::Superblocks | Scales::Halves | Scales::HalfMinima | Scales::ListedHalves => {
                Some(self.of_groups(2))
            }
            Scales::ListedBlocks => Some(self.of_groups(1)),
        }
    }

    /// Returns the words before the firsts, and before the seconds.
    pub(crate) fn starts(self) -> [usize; 2] {
        let first = self.groups() * self.planes();
        [first, first + self.firsts().words()]
    }

    /// Returns the words of a row: an even number.
    pub(crate) fn row_words(self) -> usize {
        let [_, second] = self.starts();
        (second + self.seconds().map_or(0, GroupNumbers::words)).next_multiple_of(2)
    }

    /// Adds the arguments that all kernels have last.
    pub(super) fn add_numbers(self, arguments: &mut Arguments) {
        let GroupFormat { form, sizes, .. } = self.form.into();
        let place = |numbers: GroupNumbers| numbers.shift | (numbers.bytes.ilog2() as usize) << 5;
        let seconds = self.seconds().map_or(0, place);
        // Half groups have their scales as in `Scales::Halves`, of a unit in f32.
        let (form, scale_type) = match self.has_unit() {
            true => (GroupFormat::from(GroupForm { bits: 6, scales: Scales::Halves }).form, 0),
            false => (form, sizes.scale_type),
        };
        let list = FloatFormat::from(self.form).list.unwrap_or(0);
        let format = form | scale_type << 4 | place(self.firsts()) << 6 | seconds << 13 | list << 20;
        let [_, second] = self.starts();
        format.add_to(arguments, "format");
        self.row_words().add_to(arguments, "row_words");
        second.add_to(arguments, "second");
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_models::FloatCodes;

    use super::*;
    use crate::{group_form::List, kernels::constant::KernelConstant};

    fn layout(bits: usize, scales: Scales, inputs: usize) -> CudaGroups {
        CudaGroups { form: GroupForm { bits, scales }, inputs }
    }

    /// Compares the arguments `format`, `row_words` and `second`.
    fn assert_numbers(of: CudaGroups, expected: [usize; 3]) {
        let mut arguments = Arguments::default();
        of.add_numbers(&mut arguments);
        let found: Vec<_> = arguments.sizes.into_iter().map(|(_, number)| number).collect();
        assert_eq!(found, expected.map(KernelConstant::from), "{}", of.form.name());
    }

    #[test]
    fn formats_are_as_kernels_read_them() {
        let groups = |size, dtype| Groups { size, dtype };
        // 4 groups of 128 inputs each, in f16.
        let of = layout(4, Scales::Symmetric(groups(128, Dtype::F16)), 512);
        assert_numbers(of, [2 << 4 | (2 | 1 << 5) << 6, 2, 2]);
        let of = layout(4, Scales::Zeros(groups(128, Dtype::BF16)), 512);
        assert_numbers(of, [1 | 1 << 4 | (2 | 1 << 5) << 6 | 2 << 13, 4, 2]);
        let of = layout(5, Scales::Superblocks, 320);
        assert_numbers(of, [3 | 2 << 4 | (3 | 2 << 5) << 6 | (1 << 5) << 13, 18, 12]);
        let of = layout(6, Scales::Halves, 256);
        assert_numbers(of, [4 | 2 << 4 | (3 | 1 << 5) << 6 | (1 << 5) << 13, 22, 17]);
        let of = layout(4, Scales::Listed(List::E2m1, groups(32, Dtype::F32)), 96);
        assert_numbers(of, [5 | (2 << 5) << 6, 4, 3]);
        // 16 exponents, in a byte each.
        let of = layout(4, Scales::Listed(List::E2m1, groups(32, Dtype::F8_E8M0)), 512);
        assert_numbers(of, [5 | 3 << 4, 4, 4]);
        // 2 groups of 64 inputs each, in f32, with list 1.
        let of = layout(4, Scales::Floats(FloatCodes::Nf4, groups(64, Dtype::F32)), 128);
        assert_numbers(of, [(1 | 2 << 5) << 6 | 1 << 20, 2, 2]);
        // A unit of the row, and 4 times the bytes of two halves.
        let of = layout(4, Scales::Floats(FloatCodes::E2m1, groups(16, Dtype::F8_E4M3)), 128);
        assert_numbers(of, [4 | (WHOLE_ROW | 2 << 5) << 6 | (1 << 5) << 13, 4, 1]);
    }

    #[test]
    fn runs_are_powers_of_two_or_rows() {
        let run = |size: usize, inputs: usize| {
            let of = layout(8, Scales::Minima(Groups { size, dtype: Dtype::F16 }), inputs);
            (of.run(), of.firsts().shift)
        };
        assert_eq!(
            [run(64, 192), run(96, 192), run(192, 192), run(256, 256)],
            [(64, 1), (32, 0), (192, WHOLE_ROW), (256, 3)]
        );
    }

    #[test]
    fn rows_take_little_more_than_panels_do() {
        for (bits, scales) in [
            (4, Scales::Superblocks),
            (5, Scales::Superblocks),
            (6, Scales::Halves),
            (4, Scales::ListedBlocks),
            (4, Scales::Listed(List::E2m1, Groups { size: 32, dtype: Dtype::F8_E8M0 })),
            (4, Scales::Zeros(Groups { size: 128, dtype: Dtype::F16 })),
            (8, Scales::Symmetric(Groups { size: 32, dtype: Dtype::F16 })),
            (8, Scales::Floats(FloatCodes::E4m3, Groups { size: 128, dtype: Dtype::F32 })),
            (4, Scales::Floats(FloatCodes::E2m1, Groups { size: 16, dtype: Dtype::F8_E4M3 })),
        ] {
            let of = layout(bits, scales, 2048);
            let codes = of.inputs * if bits == 8 { 8 } else { 4 } / 8;
            let (bytes, panels) = (codes + of.row_words() * WORD, of.form.row_bytes(of.inputs));
            // Panels have a unit for each 256 inputs.
            let units = if of.has_unit() { of.inputs / SUPERBLOCK * WORD } else { 0 };
            assert!(
                bytes >= panels - WORD - units && bytes * 100 <= panels * 103,
                "{}: {bytes}, {panels}",
                of.form.name()
            );
        }
    }
}
