//! Codes that lists look up, as whole numbers of a unit.

use super::{
    coding::{Coding, Numbers, OfGroups},
    expr::Expr,
    schemes::numbers::FloatCodes,
};

/// The most bits of a whole number.
const MAX_BITS: usize = 8;

impl Coding {
    /// Returns the list that all codes look up, if they do.
    #[must_use]
    pub fn list(&self) -> Option<&[f32]> {
        lists(&self.codes)
    }

    /// Returns what codes stand for, if they are floating-point numbers of a known type.
    #[must_use]
    pub fn float_codes(&self) -> Option<FloatCodes> {
        FloatCodes::of_list(self.list()?)
    }

    /// Returns codes that are places in [`Self::list`].
    #[must_use]
    pub fn places(&self) -> Expr {
        self.codes.clone().with_lists(&places)
    }

    /// Returns the same weight with codes that are whole numbers, if they are multiples of one power of two, or of one number in
    /// each row.
    ///
    /// MXFP4's numbers are multiples of 0.5 up to 6, and so integers of 5 bits; those of `IQ4_NL` have 8 bits. The product of
    /// code and scale is the same number, because the unit is a power of two. Of rows it is that, or the float next to it:
    /// bitsandbytes multiplies its 8-bit codes by two numbers.
    #[must_use]
    pub fn in_whole_numbers(&self) -> Option<Self> {
        if let Numbers::Integers { .. } = self.numbers {
            return Some(self.clone());
        }
        if let Some(of_rows) = self.in_rows() {
            return Some(of_rows);
        }
        let (unit, bits) = whole_numbers(lists(&self.codes)?)?;
        let codes = self.codes.clone().with_lists(&|list| list.iter().map(|number| number / unit).collect());
        let scales = match &self.scales {
            same if unit == 1.0 => same.clone(),
            // Scales that are a list's are numbers of another list.
            OfGroups::Numbers(scales) if lists(scales).is_some() => {
                let of_units = |list: &[f32]| list.iter().map(|number| number * unit).collect();
                OfGroups::Numbers(scales.clone().with_lists(&of_units))
            }
            OfGroups::Numbers(_) | OfGroups::Steps { .. } => return None,
        };
        let numbers = Numbers::Integers { bits, signed: true };
        Some(Self { codes: codes.integers(), numbers, scales, ..self.clone() })
    }

    /// Returns the same weight with codes that are whole numbers, if they are those times a number for each row.
    fn in_rows(&self) -> Option<Self> {
        let (Expr::Product(codes, by), OfGroups::Numbers(scales)) = (&self.codes, &self.scales) else {
            return None;
        };
        let (Expr::Floats(codes), Numbers::Floats { bits }) = (&**codes, self.numbers) else { return None };
        let is_whole = matches!(**codes, Expr::Integers(_));
        if !is_whole || !by.is_same_in_columns() || scales.as_number().is_none() {
            return None;
        }
        let numbers = Numbers::Integers { bits, signed: true };
        let scales = OfGroups::Numbers((**by).clone().times(scales.clone()));
        Some(Self { codes: (**codes).clone(), numbers, scales, ..self.clone() })
    }
}

impl Expr {
    /// Returns codes in E4M3, and of what unit they are the numbers, if elements are so: `[…, columns]` both, with one unit in all
    /// columns of a row.
    ///
    /// The product of code and unit is the element, or the float next to it where the element is a quotient.
    #[must_use]
    pub fn in_e4m3(&self) -> Option<[Self; 2]> {
        Some(match self {
            Self::Lookup(..) if lists(self).and_then(FloatCodes::of_list) == Some(FloatCodes::E4m3) => {
                let ones = |list: &[f32]| vec![1.0; list.len()];
                [self.clone().with_lists(&places).integers(), self.clone().with_lists(&ones)]
            }
            Self::Quotient(one, unit) if unit.is_same_in_columns() => {
                let [codes, of] = one.in_e4m3()?;
                [codes, of.divided_by((**unit).clone())]
            }
            Self::Product(one, unit) if unit.is_same_in_columns() => {
                let [codes, of] = one.in_e4m3()?;
                [codes, of.times((**unit).clone())]
            }
            _ => return None,
        })
    }

    /// Returns whether the last dimension is one element, as the expression is written.
    fn is_same_in_columns(&self) -> bool {
        matches!(self, Self::Reshape(_, shape) if shape.last() == Some(&1))
    }
}

/// Returns the places of a list's numbers. Lists are short.
fn places(list: &[f32]) -> Vec<f32> {
    (0u16..).zip(list).map(|(place, _)| f32::from(place)).collect()
}

/// Returns the numbers of the list that all elements of an expression come from.
fn lists(expr: &Expr) -> Option<&[f32]> {
    match expr {
        Expr::Lookup(_, list) => match &**list {
            Expr::Constant(numbers) => Some(numbers),
            _ => None,
        },
        Expr::Concatenate(parts, _) => {
            let mut all = parts.iter().map(lists);
            let first = all.next()??;
            // NaN is not equal to itself.
            let is_first =
                |list: &[f32]| list.iter().map(|x| x.to_bits()).eq(first.iter().map(|x| x.to_bits()));
            all.all(|list| list.is_some_and(is_first)).then_some(first)
        }
        Expr::Integers(of) => lists(of),
        _ => lists(expr.rearranged()?),
    }
}

/// Returns the largest power of two that all numbers are multiples of, and the bits of the largest multiple with its sign.
fn whole_numbers(list: &[f32]) -> Option<(f32, usize)> {
    let are_whole = |unit: f32| list.iter().all(|number| (number / unit).fract() == 0.0);
    // Elements of few bits have few binary places.
    let unit = (-12..=0).rev().map(|exponent| 2f32.powi(exponent)).find(|&unit| are_whole(unit))?;
    let holds = |bits: &usize| {
        let half = 2f32.powi(i32::try_from(*bits).unwrap_or(0) - 1);
        list.iter().all(|number| (-half..half).contains(&(number / unit)))
    };
    Some((unit, (2..=MAX_BITS).find(holds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(list: &[f32]) -> Option<Coding> {
        let codes = Expr::Stored(0).unpack(4).lookup(Expr::Constant(list.to_vec())).reshape(&[2, 32]);
        let scales = Expr::Stored(1).unpack(8).lookup(Expr::Constant(vec![1.0, 2.0]));
        Coding::in_groups(codes, Numbers::Floats { bits: 4 }, 32, scales).in_whole_numbers()
    }

    #[test]
    fn joined_codes_of_floats_are_recognized() {
        for known in FloatCodes::ALL {
            let codes = |count| Expr::Stored(0).unpack(8).lookup(known.list()).reshape(&[count, 32]);
            let of = |codes| Coding::in_groups(codes, Numbers::Floats { bits: 8 }, 32, Expr::number(1.0));
            let joined = Expr::Concatenate(vec![codes(2), codes(3)], 0);
            assert_eq!(of(joined.clone()).float_codes(), Some(known));
            let other = codes(2).with_lists(&|list| list.iter().map(|number| number * 3.0).collect());
            assert_eq!(of(other.clone()).float_codes(), None);
            assert_eq!(of(Expr::Concatenate(vec![joined, other], 0)).float_codes(), None);
        }
    }

    #[test]
    fn whole_numbers_times_a_number_of_each_row_are_whole() {
        let whole = Expr::Stored(0).integers();
        let of = |by: &[usize], scales| {
            let codes = whole.clone().floats().times(Expr::Stored(1).floats().reshape(by));
            Coding::in_groups(codes, Numbers::Floats { bits: 8 }, 32, scales).in_whole_numbers()
        };
        let found = of(&[4, 1], Expr::number(0.5)).unwrap();
        assert_eq!(
            (found.codes, found.numbers),
            (whole.clone(), Numbers::Integers { bits: 8, signed: true })
        );
        let scales = Expr::Stored(1).floats().reshape(&[4, 1]).times(Expr::number(0.5));
        assert_eq!(found.scales, OfGroups::Numbers(scales));
        assert!(of(&[1, 32], Expr::number(0.5)).is_none());
        assert!(of(&[4, 1], Expr::Stored(2)).is_none());
    }

    #[test]
    fn scales_in_e4m3_have_a_unit() {
        let stored = || Expr::Stored(0).unpack(8).lookup(FloatCodes::E4m3.list());
        let unit = |index| Expr::Stored(index).floats().reshape(&[1, 1]);
        let [codes, units] = stored().divided_by(unit(1)).in_e4m3().unwrap();
        let places = Expr::Constant((0u8..=255).map(f32::from).collect());
        assert_eq!(codes, Expr::Stored(0).unpack(8).lookup(places).integers());
        let ones = Expr::Stored(0).unpack(8).lookup(Expr::Constant(vec![1.0; 256]));
        assert_eq!(units, ones.divided_by(unit(1)));
        // Units of columns, and scales that are something else.
        assert_eq!(stored().times(Expr::Stored(1).floats().reshape(&[1, 4])).in_e4m3(), None);
        assert_eq!(Expr::Concatenate(vec![stored(), stored()], 1).in_e4m3(), None);
        assert_eq!(unit(1).in_e4m3(), None);
    }

    #[test]
    fn lists_of_multiples_are_whole_numbers() {
        let whole = whole(&[0.0, 0.5, 1.0, 1.5, -6.0]).unwrap();
        assert_eq!(whole.numbers, Numbers::Integers { bits: 5, signed: true });
        let list = Expr::Constant(vec![0.0, 1.0, 2.0, 3.0, -12.0]);
        assert_eq!(whole.codes, Expr::Stored(0).unpack(4).lookup(list).reshape(&[2, 32]).integers());
        let halves = Expr::Stored(1).unpack(8).lookup(Expr::Constant(vec![0.5, 1.0]));
        assert_eq!(whole.scales, OfGroups::Numbers(halves));
    }

    #[test]
    fn the_range_of_whole_numbers_decides_their_bits() {
        let bits = |list: &[f32]| whole(list).map(|coding| coding.numbers);
        let integers = |bits| Numbers::Integers { bits, signed: true };
        assert_eq!(bits(&[-127.0, 113.0]), Some(integers(8)));
        assert_eq!(bits(&[-8.0, 7.0]), Some(integers(4)));
        // Those of nf4 are no multiples, those of E4M3 too many, and E8M0 has a NaN.
        for list in [[0.079_580_3, 1.0], [448.0, 0.125], [f32::NAN, 1.0], [128.0, 1.0]] {
            assert_eq!(bits(&list), None, "{list:?}");
        }
    }
}
