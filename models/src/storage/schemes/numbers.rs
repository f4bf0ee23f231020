//! Floating-point numbers of 4 and 8 bits.

use crate::storage::expr::Expr;

/// What floating-point codes of 4 and 8 bits stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatCodes {
    /// 8 bits, without infinities, and NaN alone with all ones (OCP 8-bit Floating Point Specification, version 1.0).
    E4m3,
    /// 4 bits (OCP Microscaling Formats, version 1.0).
    E2m1,
    /// bitsandbytes' 4 bits for weights that are normally distributed (QLoRA, arXiv 2305.14314, appendix E).
    Nf4,
    /// bitsandbytes' 4-bit floats, of which the largest is one.
    Fp4,
}

/// The numbers of E2M1, by their 4 bits.
const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

const NF4: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

/// The magnitudes of fp4, by their lower 3 bits, before they are divided by the largest.
const FP4_MAGNITUDES: [f32; 8] = [0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0];

impl FloatCodes {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::E4m3, Self::E2m1, Self::Nf4, Self::Fp4];

    /// Returns the numbers, by their codes.
    #[must_use]
    pub fn numbers(self) -> Vec<f32> {
        match self {
            Self::E4m3 => (0..=u8::MAX).map(e4m3_number).collect(),
            Self::E2m1 => E2M1.to_vec(),
            Self::Nf4 => NF4.to_vec(),
            Self::Fp4 => {
                let magnitudes = FP4_MAGNITUDES.map(|magnitude| magnitude / 12.0);
                // Both zeros are positive.
                [magnitudes, magnitudes.map(|magnitude| 0.0 - magnitude)].concat()
            }
        }
    }

    /// Returns the bits of a code.
    #[must_use]
    pub fn bits(self) -> usize {
        if self == Self::E4m3 { 8 } else { 4 }
    }

    /// Returns those of a list of numbers.
    pub(in crate::storage) fn of_list(list: &[f32]) -> Option<Self> {
        // NaN is not equal to itself.
        let are_same = |codes: &Self| {
            list.iter().map(|number| number.to_bits()).eq(codes.numbers().iter().map(|x| x.to_bits()))
        };
        Self::ALL.into_iter().find(are_same)
    }

    /// Returns the list that codes look up.
    #[must_use]
    pub fn list(self) -> Expr {
        Expr::Constant(self.numbers())
    }
}

fn e4m3_number(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
    };
    if code < 128 { magnitude } else { -magnitude }
}

/// Returns the powers of two of E8M0, by their 8 bits. 255 is NaN.
pub(super) fn e8m0() -> Expr {
    let number = |code: i32| if code == 255 { f32::NAN } else { 2f32.powi(code - 127) };
    Expr::Constant((0..256).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_standards() {
        for (code, number) in [
            (0, 0.0),
            (1, 2f32.powi(-9)),
            (8, 2f32.powi(-6)),
            (0x38, 1.0),
            (0x7E, 448.0),
            (0xB8, -1.0),
            (0xFE, -448.0),
        ] {
            assert_eq!(e4m3_number(code).to_bits(), f32::to_bits(number), "{code:#x}");
        }
        assert!(e4m3_number(0x7F).is_nan() && e4m3_number(0xFF).is_nan());
        let all: Vec<_> = FloatCodes::ALL.map(FloatCodes::numbers).to_vec();
        for (numbers, codes) in all.iter().zip(FloatCodes::ALL) {
            assert_eq!(numbers.len(), 1 << codes.bits());
            assert_eq!(FloatCodes::of_list(numbers), Some(codes));
        }
        // What bitsandbytes 0.50 stores for fp4.
        assert_eq!(all[3][1..4], [0.005_208_333_5, 0.666_666_7, 1.0]);
        assert_eq!((all[3][8].to_bits(), all[3][11]), (0, -1.0));
        let Expr::Constant(powers) = e8m0() else { panic!("found no list") };
        assert_eq!((powers[0], powers[127], powers[254]), (2f32.powi(-127), 1.0, 2f32.powi(127)));
    }
}
