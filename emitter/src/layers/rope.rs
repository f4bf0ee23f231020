//! Rotary position embedding.
//!
//! Angles are not computed on the device, because back ends reduce large arguments of sine and cosine with different
//! precision. Two small tables hold `cos` and `sin` of `64·i·f` and of `j·f`, computed in `f64`. The angle addition theorem
//! gives any position `64·i + j` to about one unit in the last place of `f32`, whatever the context.

use mlxcel_models::{Pairs, Rope};
use safetensors::Dtype;

use super::builder::Builder;
use crate::{
    graph::{Graph, Tensor},
    kernels::{CudaRotation, Grid, Isa, Rotations},
    types::TensorType,
};

/// Rows of the fine table. A power of two, so that a position is split by a shift and a mask. `rotation.c` has it too.
const FINE: usize = 64;

/// Cosines and sines at a function's positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rotation {
    pub(crate) pairs: Pairs,
    /// `[batch, tokens, width / 2]`.
    pub(crate) cos: Tensor,
    /// `[batch, tokens, width / 2]`.
    pub(crate) sin: Tensor,
    /// `[batch, tokens, 2, width / 2]` or `[batch, tokens, width / 2, 2]`: the negated sine, then the sine.
    signed_sin: Tensor,
}

/// Threads of a workgroup: `THREADS` of `cuda/rotation.c`.
const GPU_THREADS: usize = 128;

/// Positions whose angles the kernel computes at least in a workgroup.
const KERNEL_GRAIN: usize = 16;

/// Returns the rotation at `positions`, `[batch, tokens]`, all below `capacity`.
pub(crate) fn rotation(b: &mut Builder<'_>, rope: &Rope, positions: Tensor, capacity: usize) -> Rotation {
    let frequencies = rope.inverse_frequencies();
    // One factor of each product carries the amplitude.
    let coarse_step = (FINE, rope.amplitude());
    let coarse = tables(&mut b.graph, &frequencies, coarse_step, capacity.div_ceil(FINE));
    let fine = tables(&mut b.graph, &frequencies, (1, 1.0), FINE);
    let [cos, sin] = match (b.numerics.cpu_isa(), b.numerics.gpu) {
        (Some(isa), _) | (None, Some(isa)) => kernel(b, isa, positions, coarse, fine),
        (None, None) => generated(&mut b.graph, positions, coarse, fine),
    };
    let g = &mut b.graph;
    let negative = g.negate(sin);
    let pair = pair_dimension(rope.pairs) - 1;
    let mut both = g.shape(sin).to_vec();
    both.insert(pair, 1);
    let parts = [negative, sin].map(|part| g.reshape(part, &both));
    Rotation { pairs: rope.pairs, cos, sin, signed_sin: g.concatenate(&parts, pair) }
}

/// Returns cosine and sine of each position, `[batch, tokens, frequencies]`.
fn kernel(
    b: &mut Builder<'_>,
    isa: Isa,
    positions: Tensor,
    coarse: [Tensor; 2],
    fine: [Tensor; 2],
) -> [Tensor; 2] {
    let &[batch, tokens] = b.graph.shape(positions) else { return coarse };
    let items = batch * tokens;
    let pairs = b.graph.shape(fine[0])[1];
    let [cos_coarse, sin_coarse] = coarse;
    let [cos_fine, sin_fine] = fine;
    let cos = TensorType::new(Dtype::F32, [batch, tokens, pairs]);
    let sin = cos.clone();
    let results = if isa.is_gpu() {
        let call = CudaRotation { positions, cos_coarse, sin_coarse, cos_fine, sin_fine, cos, sin, pairs };
        b.module.call(&mut b.graph, isa, call, Grid { items, grain: GPU_THREADS })
    } else {
        let count = b.lengths(batch, tokens);
        let call =
            Rotations { positions, count, cos_coarse, sin_coarse, cos_fine, sin_fine, cos, sin, pairs };
        b.module.call(&mut b.graph, isa, call, Grid { items, grain: KERNEL_GRAIN })
    };
    [results[0], results[1]]
}

/// The same without a kernel.
fn generated(
    g: &mut Graph,
    positions: Tensor,
    coarse_tables: [Tensor; 2],
    fine_tables: [Tensor; 2],
) -> [Tensor; 2] {
    let shape = g.shape(positions).to_vec();
    let shift = g.full(f64::from(FINE.trailing_zeros()), Dtype::I32, &shape);
    let coarse = g.shift_right_logical(positions, shift);
    #[expect(clippy::cast_precision_loss, reason = "64 is exact")]
    let mask = g.full((FINE - 1) as f64, Dtype::I32, &shape);
    let fine = g.and(positions, mask);
    let [cos_a, sin_a] = coarse_tables.map(|table| g.take_rows(table, coarse));
    let [cos_b, sin_b] = fine_tables.map(|table| g.take_rows(table, fine));
    let products = |g: &mut Graph, x, y, z, w| (g.multiply(x, y), g.multiply(z, w));
    let (x, y) = products(g, cos_a, cos_b, sin_a, sin_b);
    let cos = g.subtract(x, y);
    let (x, y) = products(g, sin_a, cos_b, cos_a, sin_b);
    let sin = g.add(x, y);
    [cos, sin]
}

/// Returns the dimension of `[batch, tokens, heads, …]` that separates the two elements of a pair.
fn pair_dimension(pairs: Pairs) -> usize {
    match pairs {
        Pairs::Halves => 3,
        Pairs::Interleaved => 4,
    }
}

/// Returns cosine and sine of `row · step · frequency`, `[rows, frequencies]`, times the amplitude.
fn tables(g: &mut Graph, frequencies: &[f32], (step, amplitude): (usize, f64), rows: usize) -> [Tensor; 2] {
    #[expect(clippy::cast_precision_loss, reason = "positions are below 2^52")]
    let angles: Vec<f64> = (0..rows)
        .flat_map(|row| frequencies.iter().map(move |&f| (row * step) as f64 * f64::from(f)))
        .collect();
    [f64::cos as fn(f64) -> f64, f64::sin].map(|function| {
        #[expect(clippy::cast_possible_truncation, reason = "the table is f32")]
        let values: Vec<f32> = angles.iter().map(|&angle| (amplitude * function(angle)) as f32).collect();
        g.constant_f32(&values, &[rows, frequencies.len()])
    })
}

/// Rotates the first dimensions of every head of `x`, `[batch, tokens, heads, head_dim]`.
///
/// It adds `x` and a copy of `x` with each pair reversed, which compiles to one loop over elements and no concatenation.
pub(crate) fn rotate(g: &mut Graph, rotation: Rotation, x: Tensor) -> Tensor {
    let (&[batch, tokens, heads, head_dim], &[_, _, pairs]) = (g.shape(x), g.shape(rotation.cos)) else {
        return x;
    };
    let width = 2 * pairs;
    if width < head_dim {
        let rotated = g.slice_dimension(x, 3, 0, width);
        let rotated = rotate(g, rotation, rotated);
        let rest = g.slice_dimension(x, 3, width, head_dim);
        return g.concatenate(&[rotated, rest], 3);
    }
    let pair = pair_dimension(rotation.pairs);
    let mut split = vec![batch, tokens, heads, pairs];
    split.insert(pair, 2);
    let frequency = 7 - pair;
    let by_pairs = g.reshape(x, &split);
    let exchanged = g.reverse(by_pairs, &[pair]);
    let cos = g.broadcast_in_dim(rotation.cos, &split, &[0, 1, frequency]);
    let sin = g.broadcast_in_dim(rotation.signed_sin, &split, &[0, 1, 3, 4]);
    let (a, b) = (g.multiply(by_pairs, cos), g.multiply(exchanged, sin));
    let rotated = g.add(a, b);
    g.reshape(rotated, &[batch, tokens, heads, head_dim])
}
