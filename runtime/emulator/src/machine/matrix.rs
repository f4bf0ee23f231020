//! Products of matrices of a warp: which lane has which elements, PTX ISA, `mma.m16n8k16` and its like.

use half::{bf16, f16};

use super::dimensions::LANES;
use crate::ptx::MatrixType;

/// The most columns of `a`.
const DEPTH_MAX: usize = 32;

/// The bits of a register in each lane.
type Lanes = [u64; LANES];

/// Returns `a · b + c`, 16 × 8: `a` has 16 rows, `b` 8 columns.
///
/// Registers of `a` are of rows `lane / 4` and 8 more, then of the other half of columns. A register has as many elements as fit
/// into 32 bits. Sums are exact before they are rounded, as GPUs' are but for what they cut off.
pub(super) fn product(ty: MatrixType, a: &[Lanes], b: &[Lanes], c: &[Lanes]) -> Vec<Lanes> {
    let packed = if ty == MatrixType::S8 { 4 } else { 2 };
    let halves = b.len();
    let depth = halves * 4 * packed;
    let mut left = [[0.0; DEPTH_MAX]; 16];
    let mut right = [[0.0; 8]; DEPTH_MAX];
    for lane in 0..LANES {
        let (group, place) = (lane / 4, lane % 4);
        for (index, register) in a.iter().enumerate() {
            let (row, half) = (group + index % 2 * 8, index / 2);
            for part in 0..packed {
                left[row][half * 4 * packed + place * packed + part] = element(ty, register[lane], part);
            }
        }
        for (half, register) in b.iter().enumerate() {
            for part in 0..packed {
                right[half * 4 * packed + place * packed + part][group] = element(ty, register[lane], part);
            }
        }
    }
    let mut sums = [[0.0; 8]; 16];
    for (row, sums) in left.iter().zip(&mut sums) {
        for (x, column) in row.iter().zip(&right).take(depth) {
            sums.iter_mut().zip(column).for_each(|(sum, y)| *sum += x * y);
        }
    }
    let mut results = vec![[0; LANES]; 4];
    for (index, result) in results.iter_mut().enumerate() {
        for (lane, value) in result.iter_mut().enumerate() {
            let (row, column) = (lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2);
            let sum: f64 = sums[row][column];
            let before = c[index][lane] as u32;
            *value = u64::from(match ty {
                MatrixType::S8 => before.wrapping_add((sum as i64) as u32),
                MatrixType::F16 | MatrixType::Bf16 => {
                    ((f64::from(f32::from_bits(before)) + sum) as f32).to_bits()
                }
            });
        }
    }
    results
}

/// Returns an element of a register.
fn element(ty: MatrixType, bits: u64, part: usize) -> f64 {
    match ty {
        MatrixType::S8 => f64::from((bits >> (8 * part)) as i8),
        MatrixType::F16 => f16::from_bits((bits >> (16 * part)) as u16).to_f64(),
        MatrixType::Bf16 => bf16::from_bits((bits >> (16 * part)) as u16).to_f64(),
    }
}
