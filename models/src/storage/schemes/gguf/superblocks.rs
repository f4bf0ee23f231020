//! Superblocks of 256 elements, whose groups have integers as scales and minima: Q2_K to Q6_K and IQ4_XS.

use super::{
    blocks::{Blocks, Decoded},
    lists,
};
use crate::storage::{
    coding::{Numbers, OfGroups},
    expr::Expr,
};

/// Elements of a superblock.
const BLOCK: usize = 256;

/// Returns what [`Blocks::decoded`] takes for integers in groups of this size.
fn integers(bits: usize, signed: bool, group: usize) -> (Numbers, usize, usize) {
    (Numbers::Integers { bits, signed }, BLOCK, group)
}

/// Returns steps of so many bits.
fn steps_of(bits: usize, signed: bool, steps: Expr) -> (Expr, Numbers) {
    (steps, Numbers::Integers { bits, signed })
}

/// Returns minima that are subtracted, as so many steps below zero.
fn negative(blocks: &Blocks, each: usize, steps: (Expr, Numbers), size: Expr) -> OfGroups {
    let below = size.times(Expr::Constant(vec![-1.0]).reshape(&[1, 1, 1]));
    blocks.steps(each, steps, below)
}

pub(super) fn q2_k(blocks: &Blocks) -> Decoded {
    const GROUPS: usize = BLOCK / 16;
    let codes = blocks.fields(GROUPS, BLOCK / 4, 2, 32);
    // Low halves are scales, high ones minima.
    let both = blocks.fields(0, GROUPS, 4, GROUPS);
    let scales = steps_of(4, false, both.clone().slice(2, 0, GROUPS));
    let minima = steps_of(4, false, both.slice(2, GROUPS, 2 * GROUPS));
    let scales = blocks.steps(GROUPS, scales, blocks.half(80));
    let minima = negative(blocks, GROUPS, minima, blocks.half(82));
    blocks.decoded(codes, integers(2, false, 16), scales, Some(minima))
}

pub(super) fn q3_k(blocks: &Blocks) -> Decoded {
    let high = blocks.fields(0, BLOCK / 8, 1, BLOCK / 8);
    let codes = blocks.fields(32, BLOCK / 4, 2, 32).or(high.shifted(2)).plus(-4);
    // Four bits of each scale, then the other two.
    let scales = blocks.fields(96, 8, 4, 8).or(blocks.fields(104, 4, 2, 4).shifted(4)).plus(-32);
    let scales = blocks.steps(BLOCK / 16, steps_of(6, true, scales), blocks.half(108));
    blocks.decoded(codes, integers(3, true, 16), scales, None)
}

/// Returns the six-bit scales and minima of eight groups, whose bytes begin at `start`.
fn scales_and_minima(blocks: &Blocks, start: usize) -> [(Expr, Numbers); 2] {
    let last = blocks.fields(start + 8, 4, 4, 4);
    [0, 1].map(|which| {
        let bytes = blocks.bytes(start + 4 * which, 4).unpack(8);
        let first = Expr::And(bytes.clone().into(), 63);
        // Two bits of each of the other four are beside the first.
        let high = Expr::And(bytes.shifted(-2).into(), 48);
        let others = last.clone().slice(2, 4 * which, 4 * which + 4).or(high);
        steps_of(6, false, Expr::Concatenate(vec![first, others], 2))
    })
}

/// Returns codes in eight groups with scales and minima: two units, what [`scales_and_minima`] reads, and codes.
fn with_minima(blocks: &Blocks, bits: usize, codes: Expr) -> Decoded {
    const GROUPS: usize = BLOCK / 32;
    let [scales, minima] = scales_and_minima(blocks, 4);
    let scales = blocks.steps(GROUPS, scales, blocks.half(0));
    let minima = negative(blocks, GROUPS, minima, blocks.half(2));
    blocks.decoded(codes, integers(bits, false, 32), scales, Some(minima))
}

pub(super) fn q4_k(blocks: &Blocks) -> Decoded {
    with_minima(blocks, 4, blocks.fields(16, BLOCK / 2, 4, 32))
}

pub(super) fn q5_k(blocks: &Blocks) -> Decoded {
    let high = blocks.fields(16, BLOCK / 8, 1, BLOCK / 8);
    with_minima(blocks, 5, blocks.fields(48, BLOCK / 2, 4, 32).or(high.shifted(4)))
}

pub(super) fn q6_k(blocks: &Blocks) -> Decoded {
    let high = blocks.fields(128, BLOCK / 4, 2, 32);
    let codes = blocks.fields(0, BLOCK / 2, 4, 64).or(high.shifted(4)).plus(-32);
    let scales =
        blocks.steps(BLOCK / 16, steps_of(8, true, blocks.signed(192, BLOCK / 16)), blocks.half(208));
    blocks.decoded(codes, integers(6, true, 16), scales, None)
}

pub(super) fn iq4_xs(blocks: &Blocks) -> Decoded {
    const GROUPS: usize = BLOCK / 32;
    let codes = blocks.fields(8, BLOCK / 2, 4, 16).lookup(lists::uneven());
    let (low, high) = (blocks.bytes(4, GROUPS / 2).unpack(4), blocks.bytes(2, GROUPS / 4).unpack(2));
    let scales = low.or(high.shifted(4)).plus(-32);
    let scales = blocks.steps(GROUPS, steps_of(6, true, scales), blocks.half(0));
    blocks.decoded(codes, (Numbers::Floats { bits: 4 }, BLOCK, 32), scales, None)
}
