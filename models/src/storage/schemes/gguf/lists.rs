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
