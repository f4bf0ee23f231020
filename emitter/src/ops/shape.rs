//! Ops that move elements: broadcast, reshape, transpose, concatenate, pad, reverse.

use safetensors::Dtype;

use super::attributes::{are_distinct, i64_array, i64_attribute};
use crate::{
    graph::{Graph, Tensor},
    types::TensorType,
};

impl Graph {
    /// Broadcasts `x` to `shape`: dimension `i` of `x` becomes `dimensions[i]` of the result. Dimensions of size 1 are repeated.
    pub fn broadcast_in_dim(&mut self, x: Tensor, shape: &[usize], dimensions: &[usize]) -> Tensor {
        const OP: &str = "stablehlo.broadcast_in_dim";
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) {
            let ascending = dimensions.windows(2).all(|pair| pair[0] < pair[1]);
            let fits = dimensions.len() == ty.rank()
                && dimensions
                    .iter()
                    .zip(&ty.shape)
                    .all(|(&d, &n)| shape.get(d).is_some_and(|&m| n == m || n == 1));
            if !ascending || !fits {
                return self.fail(
                    OP,
                    format!("found {ty} at dimensions {dimensions:?}, expected them to fit {shape:?}"),
                );
            }
        }
        let attributes = vec![("broadcast_dimensions", i64_array(dimensions))];
        self.op(OP, &[x], attributes, TensorType::new(ty.dtype, shape))
    }

    /// Broadcasts a scalar to the shape of `like`.
    pub fn broadcast_like(&mut self, scalar: Tensor, like: Tensor) -> Tensor {
        let shape = self.shape(like).to_vec();
        self.broadcast_in_dim(scalar, &shape, &[])
    }

    /// Returns the elements in row-major order in another shape. Adds no op if `x` has that shape.
    pub fn reshape(&mut self, x: Tensor, shape: &[usize]) -> Tensor {
        const OP: &str = "stablehlo.reshape";
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) || ty.shape == shape {
            return x;
        }
        let result = TensorType::new(ty.dtype, shape);
        if result.elements() != ty.elements() {
            return self.fail(OP, format!("found {ty}, expected as many elements as {result}"));
        }
        self.op(OP, &[x], vec![], result)
    }

    /// Permutes dimensions: dimension `i` of the result is dimension `permutation[i]` of `x`. It is a reshape if only dimensions
    /// of size 1 move.
    pub fn transpose(&mut self, x: Tensor, permutation: &[usize]) -> Tensor {
        const OP: &str = "stablehlo.transpose";
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) {
            return x;
        }
        let mut sorted = permutation.to_vec();
        sorted.sort_unstable();
        if sorted != (0..ty.rank()).collect::<Vec<_>>() {
            return self.fail(OP, format!("found permutation {permutation:?}, expected one of {ty}"));
        }
        let shape: Vec<_> = permutation.iter().map(|&d| ty.shape[d]).collect();
        let moved = permutation.iter().filter(|&&d| ty.shape[d] != 1);
        if moved.is_sorted() {
            return self.reshape(x, &shape);
        }
        let attributes = vec![("permutation", i64_array(permutation))];
        self.op(OP, &[x], attributes, TensorType::new(ty.dtype, shape))
    }

    /// Concatenates tensors along `dimension`.
    pub fn concatenate(&mut self, parts: &[Tensor], dimension: usize) -> Tensor {
        const OP: &str = "stablehlo.concatenate";
        if Self::poisoned(parts) {
            return Self::poison();
        }
        let types: Vec<_> = parts.iter().map(|&part| self.type_of(part)).collect();
        let Some(first) = types.first().filter(|ty| dimension < ty.rank()) else {
            return self
                .fail(OP, format!("found dimension {dimension} of no tensor, expected one that all have"));
        };
        let mut result = first.clone();
        result.shape[dimension] = 0;
        for ty in &types {
            let mut rest = ty.clone();
            if dimension < rest.rank() {
                result.shape[dimension] = result.shape[dimension].saturating_add(rest.shape[dimension]);
                rest.shape[dimension] = result.shape[dimension];
            }
            if rest != result {
                return self.fail(
                    OP,
                    format!("found {first} and {ty}, expected all but dimension {dimension} alike"),
                );
            }
        }
        self.op(OP, parts, vec![("dimension", i64_attribute(dimension))], result)
    }

    /// Concatenates a few tensors along `dimension`, in one dispatch with what computes them if they have one type.
    ///
    /// IREE compiles and runs a copy of its own for each part of [`concatenate`](Self::concatenate) that is not contiguous. A
    /// choice among parts is fused with them, and computes each part as often as there are parts.
    pub(crate) fn concatenate_fused(&mut self, parts: &[Tensor], dimension: usize) -> Tensor {
        let (&[first, ref rest @ ..], false) = (parts, Self::poisoned(parts)) else {
            return self.concatenate(parts, dimension);
        };
        let ty = self.type_of(first);
        if dimension >= ty.rank() || rest.iter().any(|&part| self.type_of(part) != ty) {
            return self.concatenate(parts, dimension);
        }
        if rest.is_empty() {
            return first;
        }
        let mut wide = ty.shape.clone();
        wide.insert(dimension, parts.len());
        let kept: Vec<_> = (0..wide.len()).filter(|&one| one != dimension).collect();
        let place = self.iota(Dtype::I32, &[parts.len()], 0);
        let mut all = self.broadcast_in_dim(first, &wide, &kept);
        for (&part, number) in rest.iter().zip(1..) {
            let is_here = self.with_number(place, number, Self::eq);
            let is_here = self.broadcast_in_dim(is_here, &wide, &[dimension]);
            let part = self.broadcast_in_dim(part, &wide, &kept);
            all = self.select(is_here, part, all);
        }
        let mut shape = ty.shape;
        shape[dimension] *= parts.len();
        self.reshape(all, &shape)
    }

    /// Adds zeros at the end of a dimension, up to `size`. Adds no op if it has that size.
    pub(crate) fn pad_end(&mut self, x: Tensor, dimension: usize, size: usize) -> Tensor {
        let shape = self.shape(x).to_vec();
        let missing = shape.get(dimension).and_then(|&found| size.checked_sub(found));
        let Some(missing) = missing.filter(|&missing| missing > 0) else { return x };
        let none = vec![0; shape.len()];
        let mut high = none.clone();
        high[dimension] = missing;
        let zero = self.scalar(0.0, self.dtype(x));
        self.pad(x, zero, &none, &high, &none)
    }

    /// Pads each dimension with `value`: `low` elements before, `high` after, and `interior` between elements.
    pub fn pad(
        &mut self,
        x: Tensor,
        value: Tensor,
        low: &[usize],
        high: &[usize],
        interior: &[usize],
    ) -> Tensor {
        let signed = |edges: &[usize]| -> Vec<_> {
            edges.iter().map(|&edge| i64::try_from(edge).unwrap_or(i64::MAX)).collect()
        };
        self.pad_or_crop(x, value, &signed(low), &signed(high), interior)
    }

    /// Pads each dimension as [`Self::pad`]. A negative `low` or `high` removes elements, after those between were added.
    pub fn pad_or_crop(
        &mut self,
        x: Tensor,
        value: Tensor,
        low: &[i64],
        high: &[i64],
        interior: &[usize],
    ) -> Tensor {
        const OP: &str = "stablehlo.pad";
        let (ty, fill) = (self.type_of(x), self.type_of(value));
        if Self::poisoned(&[x, value]) {
            return Self::poison();
        }
        if [low.len(), high.len(), interior.len()] != [ty.rank(); 3] {
            return self.fail(
                OP,
                format!("found paddings {low:?} {high:?} {interior:?}, expected one per dimension of {ty}"),
            );
        }
        if fill != TensorType::new(ty.dtype, []) {
            return self.fail(OP, format!("found padding value {fill}, expected a scalar for {ty}"));
        }
        let padded = |d: usize| {
            let between = ty.shape[d].saturating_sub(1).saturating_mul(interior[d]);
            let inner = ty.shape[d].saturating_add(between);
            inner.checked_add_signed(isize::try_from(low[d].saturating_add(high[d])).ok()?)
        };
        let Some(shape) = (0..ty.rank()).map(padded).collect::<Option<Vec<_>>>() else {
            return self
                .fail(OP, format!("found paddings {low:?} {high:?} of {ty}, expected them to leave a size"));
        };
        let attributes = vec![
            ("edge_padding_low", i64_array(low)),
            ("edge_padding_high", i64_array(high)),
            ("interior_padding", i64_array(interior)),
        ];
        self.op(OP, &[x, value], attributes, TensorType::new(ty.dtype, shape))
    }

    /// Reverses the order of elements along `dimensions`.
    pub fn reverse(&mut self, x: Tensor, dimensions: &[usize]) -> Tensor {
        const OP: &str = "stablehlo.reverse";
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && !are_distinct(dimensions, ty.rank()) {
            return self
                .fail(OP, format!("found dimensions {dimensions:?}, expected different ones of {ty}"));
        }
        self.op(OP, &[x], vec![("dimensions", i64_array(dimensions))], ty)
    }
}
