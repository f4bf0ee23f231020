//! Codes that lists look up, as whole numbers of a unit.

use super::{
    coding::{Coding, Numbers, OfGroups},
    expr::Expr,
    schemes::numbers::are_e4m3,
};

/// The most bits of a whole number.
const MAX_BITS: usize = 8;

impl Coding {
    /// Returns the list that all codes look up, if they do.
    #[must_use]
    pub fn list(&self) -> Option<&[f32]> {
        lists(&self.codes)
    }

    /// Returns whether codes are the 8 bits of E4M3.
    #[must_use]
    pub fn is_e4m3(&self) -> bool {
        self.list().is_some_and(are_e4m3)
    }

    /// Returns codes that are places in [`Self::list`].
    #[must_use]
    pub fn places(&self) -> Expr {
        // Lists are short.
        let places = |list: &[f32]| (0u16..).zip(list).map(|(place, _)| f32::from(place)).collect();
        self.codes.clone().with_lists(&places)
    }

    /// Returns the same weight with codes that are whole numbers, if they are multiples of one power of two.
    ///
    /// MXFP4's numbers are multiples of 0.5 up to 6, and so integers of 5 bits; those of `IQ4_NL` have 8 bits. The product of
    /// code and scale is the same number, because the unit is a power of two.
    #[must_use]
    pub fn in_whole_numbers(&self) -> Option<Self> {
        if let Numbers::Integers { .. } = self.numbers {
            return Some(self.clone());
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
    fn joined_codes_of_e4m3_are_recognized() {
        let numbers = crate::storage::schemes::numbers::e4m3();
        let codes = |count| Expr::Stored(0).unpack(8).lookup(numbers.clone()).reshape(&[count, 32]);
        let joined = Expr::Concatenate(vec![codes(2), codes(3)], 0);
        let of = |codes| Coding::in_groups(codes, Numbers::Floats { bits: 8 }, 32, Expr::number(1.0));
        assert!(of(joined.clone()).is_e4m3());
        let other = codes(2).with_lists(&|list| list.iter().map(|number| number * 2.0).collect());
        assert!(!of(other.clone()).is_e4m3());
        assert!(!of(Expr::Concatenate(vec![joined, other], 0)).is_e4m3());
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
