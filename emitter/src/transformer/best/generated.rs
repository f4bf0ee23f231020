//! The best tokens without kernels.
//!
//! Sorting is one loop of one thread in generated code, and 64 rounds of argmax are hundreds of dispatches. So ranks are
//! counted: the rank of an element is the number of better ones. That is too much work for all logits, but not for the largest
//! of each chunk of them. The best logits are in the best chunks, because each better chunk has a better logit. Those chunks are
//! divided into smaller ones, until a chunk is one logit.

use mlxcel_artifacts::entry::best_count;
use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    ops::Reduction,
};

/// The most chunks of a row whose ranks are counted, which compares every two of them. There is an odd number of them: from numbers
/// that threads share evenly, such as 512 and 1024, iree-compile 3.13 cannot compile the choice of the best for CUDA.
const MAX_CHUNKS: usize = 1023;

/// Returns ids, logits and the logarithms of sums, for `logits`, `[rows, vocab]`.
pub(super) fn best(g: &mut Graph, logits: Tensor) -> Vec<Tensor> {
    let &[rows, vocab] = g.shape(logits) else { return vec![logits; 3] };
    let best = best_count(vocab);
    let size = chunk_size(vocab);
    let chunks = vocab.div_ceil(size) | 1;
    let lowest = g.scalar(f64::NEG_INFINITY, Dtype::F32);
    let padded = g.pad(logits, lowest, &[0, 0], &[0, chunks * size - vocab], &[0, 0]);
    let x = g.reshape(padded, &[rows, chunks, size]);
    let first_ids = first_ids(g, [rows, chunks], size);
    let mut found = Chunks { x: without_nan(g, x), first_ids };
    let largest = found.largest(g);
    let log_sums = log_sums(g, x, largest);
    found = found.best(g, best);
    while g.shape(found.x)[2] > 1 {
        found = found.divide(g).best(g, best);
    }
    let values = g.reshape(found.x, &[rows, best]);
    vec![found.first_ids, values, log_sums]
}

/// Returns the least power of two that divides a row into few enough chunks.
fn chunk_size(elements: usize) -> usize {
    elements.div_ceil(MAX_CHUNKS).next_power_of_two()
}

/// Returns the first id of each chunk, `[rows, chunks]`.
fn first_ids(g: &mut Graph, shape: [usize; 2], size: usize) -> Tensor {
    let index = g.iota(Dtype::I32, &shape, 1);
    times(g, index, size)
}

fn times(g: &mut Graph, x: Tensor, factor: usize) -> Tensor {
    let factor = g.full_like(x, factor);
    g.multiply(x, factor)
}

/// Returns −∞ in place of NaN, which no comparison orders.
fn without_nan(g: &mut Graph, x: Tensor) -> Tensor {
    let shape = g.shape(x).to_vec();
    let lowest = g.full(f64::NEG_INFINITY, Dtype::F32, &shape);
    let is_number = g.eq(x, x);
    g.select(is_number, x, lowest)
}

/// Returns the logarithm of the sum of each row's exponentials, for chunks `[rows, chunks, size]` and the largest of each.
fn log_sums(g: &mut Graph, x: Tensor, largest: Tensor) -> Tensor {
    let shape = g.shape(x).to_vec();
    let largest = g.reduce(largest, Reduction::Max, &[1]);
    // An infinity would be subtracted from itself.
    let zero = g.full_like(largest, 0);
    let is_finite = g.is_finite(largest);
    let shift = g.select(is_finite, largest, zero);
    let shifts = g.broadcast_in_dim(shift, &shape, &[0]);
    let shifted = g.subtract(x, shifts);
    let terms = g.exponential(shifted);
    // In two sums, because a long one in f32 is not exact enough.
    let sums = g.reduce(terms, Reduction::Sum, &[2]);
    let sum = g.reduce(sums, Reduction::Sum, &[1]);
    let log = g.log(sum);
    g.add(log, shift)
}

/// Chunks of consecutive logits.
struct Chunks {
    /// `[rows, chunks, size]`, without NaN.
    x: Tensor,
    /// The id of each chunk's first logit, `[rows, chunks]`.
    first_ids: Tensor,
}

impl Chunks {
    /// Returns the largest logit of each chunk, `[rows, chunks]`.
    fn largest(&self, g: &mut Graph) -> Tensor {
        match *g.shape(self.x) {
            [rows, chunks, 1] => g.reshape(self.x, &[rows, chunks]),
            _ => {
                let largest = g.reduce(self.x, Reduction::Max, &[2]);
                // Fused with the count of ranks, they exceed the stack limit of IREE.
                g.barrier(largest)
            }
        }
    }

    /// Divides chunks into as many as can be ranked.
    fn divide(self, g: &mut Graph) -> Self {
        let &[rows, chunks, size] = g.shape(self.x) else { return self };
        let smaller = chunk_size(chunks * size);
        let parts = size / smaller;
        let x = g.reshape(self.x, &[rows, chunks * parts, smaller]);
        let shape = [rows, chunks, parts];
        let first = g.broadcast_in_dim(self.first_ids, &shape, &[0, 1]);
        let part = g.iota(Dtype::I32, &shape, 2);
        let offset = times(g, part, smaller);
        let first = g.add(first, offset);
        let first_ids = g.reshape(first, &[rows, chunks * parts]);
        // One more for an odd number, which is the last of all.
        let lowest = g.scalar(f64::NEG_INFINITY, Dtype::F32);
        let last = g.scalar(f64::INFINITY, Dtype::I32);
        let x = g.pad(x, lowest, &[0, 0, 0], &[0, 1, 0], &[0, 0, 0]);
        Self { x, first_ids: g.pad(first_ids, last, &[0, 0], &[0, 1], &[0, 0]) }
    }

    /// Returns the best `count` chunks, best first: those with the largest logits, and of equal ones those with the lowest ids.
    fn best(self, g: &mut Graph, count: usize) -> Self {
        let &[rows, chunks, size] = g.shape(self.x) else { return self };
        let count = count.min(chunks);
        let largest = self.largest(g);
        let ranks = ranks(g, largest, self.first_ids);
        // The index of the one chunk that has a rank, as a sum.
        let shape = [rows, count, chunks];
        let ranks = g.broadcast_in_dim(ranks, &shape, &[0, 2]);
        let rank = g.iota(Dtype::I32, &shape, 1);
        let has_rank = g.eq(ranks, rank);
        let index = g.iota(Dtype::I32, &shape, 2);
        let zero = g.full(0.0, Dtype::I32, &shape);
        let chosen = g.select(has_rank, index, zero);
        let index = g.reduce(chosen, Reduction::Sum, &[2]);
        // The chunks of all rows in one list, of which those of a single row begin at zero.
        let index = if rows == 1 {
            index
        } else {
            let row = g.iota(Dtype::I32, &[rows, count], 0);
            let begin = times(g, row, chunks);
            g.add(index, begin)
        };
        let x = g.reshape(self.x, &[rows * chunks, size]);
        let first_ids = g.reshape(self.first_ids, &[rows * chunks]);
        Self { x: g.take_rows(x, index), first_ids: g.take_rows(first_ids, index) }
    }
}

/// Returns how many elements of a row are better than each: larger, or as large with a lower id.
fn ranks(g: &mut Graph, x: Tensor, ids: Tensor) -> Tensor {
    let &[rows, count] = g.shape(x) else { return x };
    let shape = [rows, count, count];
    let [own, own_ids] = [x, ids].map(|x| g.broadcast_in_dim(x, &shape, &[0, 1]));
    let [other, other_ids] = [x, ids].map(|x| g.broadcast_in_dim(x, &shape, &[0, 2]));
    let larger = g.gt(other, own);
    let equal = g.eq(other, own);
    let lower = g.lt(other_ids, own_ids);
    let tie = g.and(equal, lower);
    let better = g.or(larger, tie);
    let better = g.convert(better, Dtype::I32);
    g.reduce(better, Reduction::Sum, &[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_few_and_divide_evenly() {
        for (vocab, expected) in [
            (1, 1),
            (63, 1),
            (1023, 1),
            (1024, 2),
            (50_257, 64),
            (128_256, 128),
            (151_936, 256),
            (262_144, 512),
        ] {
            assert_eq!(chunk_size(vocab), expected);
            // The next chunks are parts of these, and there are at least as many as are wanted.
            let mut size = expected;
            while size > 1 {
                let smaller = chunk_size(best_count(vocab) * size);
                assert!(size.is_multiple_of(smaller) && smaller < size, "{vocab}: {smaller}");
                size = smaller;
            }
        }
        assert_eq!(chunk_size(usize::MAX >> 12).count_ones(), 1);
    }
}
