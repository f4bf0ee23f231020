//! The numbers that codes stand for.

use crate::storage::Expr;

/// The unevenly spaced integers of `IQ4_NL` and `IQ4_XS`, by their 4 bits (ggml's `kvalues_iq4nl`).
pub const IQ4: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The numbers of E2M1, doubled, by their 4 bits. They are integers, so that both zeros are positive.
pub const TWICE_E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Returns the numbers of IQ4_NL and IQ4_XS.
pub(super) fn uneven() -> Expr {
    Expr::Constant(IQ4.map(f32::from).to_vec())
}

/// Returns the numbers of E2M1, doubled.
pub(super) fn twice_e2m1() -> Expr {
    Expr::Constant(TWICE_E2M1.map(f32::from).to_vec())
}
