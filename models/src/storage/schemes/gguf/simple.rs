//! Blocks of 32 elements: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL and MXFP4.

use safetensors::Dtype;

use super::{
    blocks::{Blocks, Decoded},
    lists,
};
use crate::storage::{coding::Numbers, expr::Expr};

/// Elements of a block.
const BLOCK: usize = 32;

/// Bytes of the lower and upper halves of codes: the low halves are of the first 16 elements.
const HALVES: usize = BLOCK / 2;

fn integers(bits: usize, signed: bool) -> (Numbers, usize, usize) {
    (Numbers::Integers { bits, signed }, BLOCK, BLOCK)
}

/// Returns codes of four bits whose bytes begin at `start`.
fn four_bits(blocks: &Blocks, start: usize) -> Expr {
    blocks.fields(start, HALVES, 4, HALVES)
}

/// Returns codes of five bits: the highest bits of all, then the others.
fn five_bits(blocks: &Blocks, start: usize) -> Expr {
    let high = blocks.bytes(start, BLOCK / 8).unpack(1);
    four_bits(blocks, start + BLOCK / 8).or(high.shifted(4))
}

pub(super) fn q4_0(blocks: &Blocks) -> Decoded {
    let codes = four_bits(blocks, 2).plus(-8);
    blocks.decoded(codes, integers(4, true), blocks.half_of_group(0), None)
}

pub(super) fn q4_1(blocks: &Blocks) -> Decoded {
    blocks.decoded(
        four_bits(blocks, 4),
        integers(4, false),
        blocks.half_of_group(0),
        Some(blocks.half_of_group(2)),
    )
}

pub(super) fn q5_0(blocks: &Blocks) -> Decoded {
    let codes = five_bits(blocks, 2).plus(-16);
    blocks.decoded(codes, integers(5, true), blocks.half_of_group(0), None)
}

pub(super) fn q5_1(blocks: &Blocks) -> Decoded {
    blocks.decoded(
        five_bits(blocks, 4),
        integers(5, false),
        blocks.half_of_group(0),
        Some(blocks.half_of_group(2)),
    )
}

pub(super) fn q8_0(blocks: &Blocks) -> Decoded {
    blocks.decoded(blocks.signed(2, BLOCK), integers(8, true), blocks.half_of_group(0), None)
}

pub(super) fn iq4_nl(blocks: &Blocks) -> Decoded {
    let codes = four_bits(blocks, 2).lookup(lists::uneven());
    blocks.decoded(codes, (Numbers::Floats { bits: 4 }, BLOCK, BLOCK), blocks.half_of_group(0), None)
}

/// Returns half of the powers of two of E8M0, of which ggml takes none as NaN: the product of two powers of half the exponent.
///
/// It takes no list, because iree-compile 3.13 fails where an index of a list is one byte of each block.
fn half_power(exponents: Expr) -> Expr {
    // 2^(half - 64), whose bits are those of a normal number.
    let power = |half: Expr| half.plus(63).shifted(23).floats_of(Dtype::F32);
    power(exponents.clone().shifted(-1)).times(power(exponents.plus(1).shifted(-1)))
}

pub(super) fn mxfp4(blocks: &Blocks) -> Decoded {
    let codes = four_bits(blocks, 1).lookup(lists::twice_e2m1());
    let scales = half_power(blocks.bytes(0, 1).unpack(8));
    blocks.decoded(codes, (Numbers::Floats { bits: 4 }, BLOCK, BLOCK), blocks.numbers(1, scales), None)
}
