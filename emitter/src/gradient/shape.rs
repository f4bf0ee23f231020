//! Gradients of ops that move elements.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    mlir::attributes::integers,
    ops::Reduction,
    types::is_float,
};

/// Adds the gradients of the operands of an op that moves elements.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    let (x, d) = (step.operand(0), step.gradient());
    let shape = g.shape(x).to_vec();
    match step.name() {
        "stablehlo.broadcast_in_dim" => {
            let dimensions = step.integers("broadcast_dimensions");
            step.send(g, 0, |g| g.sum_broadcast(d, &shape, &dimensions));
        }
        "stablehlo.reshape" => step.send(g, 0, |g| g.reshape(d, &shape)),
        "stablehlo.transpose" => {
            let permutation = step.integers("permutation");
            step.send(g, 0, |g| g.transpose(d, &inverse(&permutation)));
        }
        "stablehlo.reverse" => {
            let dimensions = step.integers("dimensions");
            step.send(g, 0, |g| g.reverse(d, &dimensions));
        }
        "stablehlo.concatenate" => concatenate(g, step),
        "stablehlo.pad" => pad(g, step),
        "stablehlo.slice" => {
            let [start, limit, strides] =
                ["start_indices", "limit_indices", "strides"].map(|name| step.integers(name));
            step.send(g, 0, |g| g.unslice(d, &shape, &start, &limit, &strides));
        }
        "stablehlo.dynamic_slice" => {
            let starts = step.op.operands.get(1..).unwrap_or_default().to_vec();
            step.send(g, 0, |g| {
                let zeros = g.zeros_like(x);
                g.dynamic_update_slice(zeros, d, &starts)
            });
        }
        "stablehlo.dynamic_update_slice" => {
            let update = step.operand(1);
            let sizes = g.shape(update).to_vec();
            let starts = step.op.operands.get(2..).unwrap_or_default().to_vec();
            step.send(g, 0, |g| {
                let zeros = g.zeros_like(update);
                g.dynamic_update_slice(d, zeros, &starts)
            });
            step.send(g, 1, |g| g.dynamic_slice(d, &starts, &sizes));
        }
        _ => return false,
    }
    true
}

/// Returns the permutation that undoes another one.
pub(super) fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    for (index, &dimension) in permutation.iter().enumerate() {
        if let Some(place) = inverse.get_mut(dimension) {
            *place = index;
        }
    }
    inverse
}

fn concatenate(g: &mut Graph, step: &mut Step<'_>) {
    let d = step.gradient();
    let dimension = step.integers("dimension").first().copied().unwrap_or_default();
    let mut start = 0;
    for index in 0..step.op.operands.len() {
        let size = g.shape(step.operand(index)).get(dimension).copied().unwrap_or_default();
        step.send(g, index, |g| g.slice_dimension(d, dimension, start, start + size));
        start += size;
    }
}

fn pad(g: &mut Graph, step: &mut Step<'_>) {
    let d = step.gradient();
    let edges = |name| integers(step.attribute(name)).unwrap_or_default();
    let (low, high) = (edges("edge_padding_low"), edges("edge_padding_high"));
    let kept = g.unpad(d, &low, &high, &step.integers("interior_padding"));
    step.send(g, 0, |_| kept);
    step.send(g, 1, |g| {
        let (all, kept) = (g.sum_all(d), g.sum_all(kept));
        g.subtract(all, kept)
    });
}

impl Graph {
    /// Returns the elements that a padding was added around and between. Those that negative padding cut away are zeros.
    pub(super) fn unpad(&mut self, x: Tensor, low: &[i64], high: &[i64], between: &[usize]) -> Tensor {
        let cut = |edges: &[i64]| edges.iter().map(|edge| -edge).collect::<Vec<_>>();
        let strides: Vec<_> = between.iter().map(|between| between + 1).collect();
        if [low, high].into_iter().flatten().all(|&edge| edge == 0) && between.iter().all(|&gap| gap == 0) {
            return x;
        }
        let zero = self.scalar(0.0, self.dtype(x));
        let none = vec![0; low.len()];
        let inner = self.pad_or_crop(x, zero, &cut(low), &cut(high), &none);
        let limit = self.shape(inner).to_vec();
        self.slice_strided(inner, &none, &limit, &strides)
    }

    /// Returns `d` at the elements that a slice took, and zeros elsewhere.
    pub(super) fn unslice(
        &mut self,
        d: Tensor,
        shape: &[usize],
        start: &[usize],
        limit: &[usize],
        strides: &[usize],
    ) -> Tensor {
        let between: Vec<_> = strides.iter().map(|stride| stride.saturating_sub(1)).collect();
        let high: Vec<_> = (0..shape.len())
            .map(|dimension| {
                let count = (limit[dimension] - start[dimension]).div_ceil(strides[dimension]);
                let covered = count.saturating_sub(1) * strides[dimension] + usize::from(count > 0);
                shape[dimension] - start[dimension] - covered
            })
            .collect();
        if self.shape(d) == shape {
            return d;
        }
        let zero = self.scalar(0.0, self.dtype(d));
        self.pad(d, zero, start, &high, &between)
    }

    /// Returns the sum of all elements.
    pub(super) fn sum_all(&mut self, x: Tensor) -> Tensor {
        let all: Vec<_> = (0..self.shape(x).len()).collect();
        self.sum_over(x, &all)
    }

    /// Returns the sum over `dimensions`, which the result does not have.
    pub(super) fn sum_over(&mut self, x: Tensor, dimensions: &[usize]) -> Tensor {
        self.with_wide_sums(x, |g, x| g.reduce(x, Reduction::Sum, dimensions))
    }

    /// Returns what `sum` makes of `x` in `f32` if `x` has fewer bits, rounded once. So does XLA, and a sum that is rounded after
    /// each addition stops growing: in `bf16` at 256 ones.
    pub(super) fn with_wide_sums(
        &mut self,
        x: Tensor,
        sum: impl FnOnce(&mut Self, Tensor) -> Tensor,
    ) -> Tensor {
        let dtype = self.dtype(x);
        let is_narrow = is_float(dtype) && dtype.bitsize() < Dtype::F32.bitsize();
        let wide = if is_narrow { self.convert(x, Dtype::F32) } else { x };
        let sum = sum(self, wide);
        self.convert(sum, dtype)
    }

    /// Returns `x`, summed to a scalar if `shape` is one.
    pub(super) fn sum_to(&mut self, x: Tensor, shape: &[usize]) -> Tensor {
        if shape.is_empty() { self.sum_all(x) } else { x }
    }

    /// Sums what a broadcast of `shape` to `dimensions` repeated.
    pub(super) fn sum_broadcast(&mut self, d: Tensor, shape: &[usize], dimensions: &[usize]) -> Tensor {
        let full = self.shape(d).to_vec();
        let kept = |dimension: &usize| {
            dimensions
                .iter()
                .position(|d| d == dimension)
                .is_some_and(|index| shape[index] == full[*dimension])
        };
        let summed: Vec<_> = (0..full.len()).filter(|dimension| !kept(dimension)).collect();
        let sum = if summed.is_empty() { d } else { self.sum_over(d, &summed) };
        // The result has the dimensions in the order of the broadcast's.
        let mut order: Vec<_> = (0..dimensions.len()).collect();
        order.sort_by_key(|&index| dimensions[index]);
        let sorted: Vec<_> = order.iter().map(|&index| shape[index]).collect();
        let sum = self.reshape(sum, &sorted);
        self.transpose(sum, &inverse(&order))
    }
}
