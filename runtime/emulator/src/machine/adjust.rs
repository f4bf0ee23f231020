//! Functions whose operands or results modifiers change.

use half::{bf16, f16};

use super::{block::Block, dimensions::LANES, warp::Warp};
use crate::{
    ptx::{Adjust, Function},
    types::Type,
};

impl Warp {
    /// Returns what a function gives in each lane.
    pub(super) fn adjusted(&self, block: &Block<'_>, adjust: Adjust, function: Function) -> [u64; LANES] {
        let of = |x: u64| if adjust.flushes_operands { flushed(x) } else { x };
        let result = |x: u64| result(adjust, x);
        match function {
            Function::Unary(function, x) => self.values(block, x).map(|x| result(function(of(x)))),
            Function::Binary(function, operands) => {
                let [x, y] = operands.map(|operand| self.values(block, operand));
                std::array::from_fn(|lane| result(function(of(x[lane]), of(y[lane]))))
            }
            Function::Ternary(function, operands) => {
                let [x, y, z] = operands.map(|operand| self.values(block, operand));
                std::array::from_fn(|lane| result(function(of(x[lane]), of(y[lane]), of(z[lane]))))
            }
        }
    }
}

/// Returns a number of `f32`, or zero of its sign if it is subnormal.
fn flushed(bits: u64) -> u64 {
    let x = f32::from_bits(bits as u32);
    u64::from((if x.is_subnormal() { 0.0_f32.copysign(x) } else { x }).to_bits())
}

fn result(adjust: Adjust, bits: u64) -> u64 {
    let mut bits = if adjust.flushes_result { flushed(bits) } else { bits };
    if adjust.saturates {
        let x = f32::from_bits(bits as u32);
        bits = u64::from((if x > 0.0 { x.min(1.0) } else { 0.0 }).to_bits());
    }
    match adjust.rectifies {
        None => bits,
        Some(Type::F16) => u64::from(rectified_f16(bits as u16)),
        Some(Type::Bf16) => u64::from(rectified_bf16(bits as u16)),
        Some(Type::F16x2) => {
            u64::from(rectified_f16((bits >> 16) as u16)) << 16 | u64::from(rectified_f16(bits as u16))
        }
        Some(_) => {
            u64::from(rectified_bf16((bits >> 16) as u16)) << 16 | u64::from(rectified_bf16(bits as u16))
        }
    }
}

/// Returns the bits of a number, or zero if it is negative. NaN has one form.
fn rectified(bits: u16, x: f32) -> u16 {
    if x.is_nan() {
        0x7fff
    } else if x > 0.0 {
        bits
    } else {
        0
    }
}

fn rectified_f16(bits: u16) -> u16 {
    rectified(bits, f16::from_bits(bits).to_f32())
}

fn rectified_bf16(bits: u16) -> u16 {
    rectified(bits, bf16::from_bits(bits).to_f32())
}
