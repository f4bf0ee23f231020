//! The numbers that codes stand for.

use crate::storage::Expr;

/// Returns the unevenly spaced integers of IQ4_NL and IQ4_XS.
pub(super) fn uneven() -> Expr {
    let numbers: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
    Expr::Constant(numbers.map(f32::from).to_vec())
}

/// Returns the numbers of E2M1, doubled. They are integers, so that both zeros are positive.
pub(super) fn twice_e2m1() -> Expr {
    let numbers: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
    Expr::Constant(numbers.map(f32::from).to_vec())
}

/// Returns half of the powers of two of E8M0. ggml has no NaN among them.
pub(super) fn half_e8m0() -> Expr {
    // The first two are below the normal numbers.
    let bits = |code: u32| if code < 2 { 0x20_0000 << code } else { (code - 1) << 23 };
    Expr::Constant((0..256).map(|code| f32::from_bits(bits(code))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_below_the_normal_ones_are_exact() {
        let Expr::Constant(powers) = half_e8m0() else { panic!("found no list") };
        let bits = |code: usize| powers[code].to_bits();
        assert_eq!([bits(0), bits(1), bits(2), bits(255)], [0x20_0000, 0x40_0000, 0x80_0000, 254 << 23]);
    }
}
