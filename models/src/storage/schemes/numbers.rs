//! Floating-point numbers of 4 and 8 bits.

use crate::storage::expr::Expr;

/// The numbers of E2M1, by their 4 bits (OCP Microscaling Formats, version 1.0).
const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Returns the numbers of E2M1.
pub(super) fn e2m1() -> Expr {
    Expr::Constant(E2M1.to_vec())
}

/// Returns the numbers of E4M3, by their 8 bits: without infinities, and NaN alone with all ones (OCP FP8, version 1.0).
#[must_use]
pub fn e4m3() -> Expr {
    Expr::Constant((0..=u8::MAX).map(e4m3_number).collect())
}

/// Returns whether a list has the numbers of E4M3.
pub(in crate::storage) fn are_e4m3(list: &[f32]) -> bool {
    list.iter().map(|number| number.to_bits()).eq((0..=u8::MAX).map(|code| e4m3_number(code).to_bits()))
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
        let Expr::Constant(powers) = e8m0() else { panic!("found no list") };
        assert_eq!((powers[0], powers[127], powers[254]), (2f32.powi(-127), 1.0, 2f32.powi(127)));
    }
}
