//! Reductions.

use safetensors::Dtype;

use super::{distinct, i64_array};
use crate::{Graph, Tensor, TensorType, types::is_integer};

/// What a reduction combines elements with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The largest, of floats.
    Max,
    /// Whether all hold.
    And,
    /// Whether any holds.
    Or,
}

const REDUCE: &str = "stablehlo.reduce";

impl Graph {
    /// Combines the elements along `dimensions`, which disappear.
    pub fn reduce(&mut self, x: Tensor, reduction: Reduction, dimensions: &[usize]) -> Tensor {
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) {
            return x;
        }
        let mut sorted = dimensions.to_vec();
        sorted.sort_unstable();
        if !distinct(dimensions, ty.rank()) {
            return self
                .fail(REDUCE, format!("found dimensions {dimensions:?}, expected different ones of {ty}"));
        }
        let logical = matches!(reduction, Reduction::And | Reduction::Or);
        if logical != (ty.dtype == Dtype::BOOL) {
            return self.fail(
                REDUCE,
                format!("found {ty} to reduce with {reduction:?}, expected truth values for and/or alone"),
            );
        }
        if reduction == Reduction::Max && is_integer(ty.dtype) {
            return self.fail(REDUCE, format!("found {ty} to reduce with {reduction:?}, expected floats"));
        }
        self.reduce_any(x, reduction, &sorted)
    }

    fn reduce_any(&mut self, x: Tensor, reduction: Reduction, dimensions: &[usize]) -> Tensor {
        let ty = self.type_of(x);
        let shape: Vec<_> = (0..ty.rank()).filter(|d| !dimensions.contains(d)).map(|d| ty.shape[d]).collect();
        let init = self.scalar(identity(reduction), ty.dtype);
        let scalar = TensorType::new(ty.dtype, []);
        let body = self.region(&[scalar.clone().into(), scalar.into()], |g, values| {
            let [a, b] = [values[0], values[1]];
            vec![match reduction {
                Reduction::Sum => g.add(a, b),
                Reduction::Product => g.multiply(a, b),
                Reduction::Max => g.maximum(a, b),
                Reduction::And => g.and(a, b),
                Reduction::Or => g.or(a, b),
            }]
        });
        let attributes = vec![("dimensions", i64_array(dimensions))];
        self.op_with_regions(
            REDUCE,
            &[x, init],
            attributes,
            vec![body],
            vec![TensorType::new(ty.dtype, shape).into()],
        )[0]
    }

    /// Combines along `dimensions`, which stay with size 1, repeated to the shape of `x`.
    pub fn reduce_broadcast(&mut self, x: Tensor, reduction: Reduction, dimensions: &[usize]) -> Tensor {
        let shape = self.shape(x).to_vec();
        let reduced = self.reduce(x, reduction, dimensions);
        let kept: Vec<_> = (0..shape.len()).filter(|d| !dimensions.contains(d)).collect();
        self.broadcast_in_dim(reduced, &shape, &kept)
    }

    /// The index of the largest element along the last dimension, `i32`: the lowest one on a tie. If a row holds NaN
    /// its index is the dimension's size, which is no index.
    pub fn argmax(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        let Some(last) = ty.rank().checked_sub(1) else {
            return self.fail("argmax", format!("found {ty}, expected a dimension to search"));
        };
        // Two plain reductions instead of one over pairs: each is a vector loop, and the tie goes to the lowest.
        let largest = self.reduce_broadcast(x, Reduction::Max, &[last]);
        let hit = self.eq(x, largest);
        self.first_true(hit)
    }

    /// The lowest index along the last dimension at which `x` is true, `i32`; the dimension's size where it is nowhere.
    pub fn first_true(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        let (Some(last), Dtype::BOOL) = (ty.rank().checked_sub(1), ty.dtype) else {
            return self
                .fail("first_true", format!("found {ty}, expected truth values with a dimension to search"));
        };
        // The largest distance from the end. For GPUs iree-compile 3.13 fills up what it reduces with the least and the
        // largest of *unsigned* numbers, 0 and -1, so that of signed ones only a maximum of none below 0 is right.
        #[expect(clippy::cast_precision_loss, reason = "a vocabulary is below 2^52")]
        let size = ty.shape[last] as f64;
        let ends = self.full(size, Dtype::I32, &ty.shape);
        let index = self.iota(Dtype::I32, &ty.shape, last);
        let distance = self.subtract(ends, index);
        let none = self.full(0.0, Dtype::I32, &ty.shape);
        let distance = self.select(x, distance, none);
        let farthest = self.reduce_any(distance, Reduction::Max, &[last]);
        let ends = self.full(size, Dtype::I32, &ty.shape[..last]);
        self.subtract(ends, farthest)
    }
}

/// The value that changes nothing. As an integer an infinity is the type's largest or smallest value.
fn identity(reduction: Reduction) -> f64 {
    match reduction {
        Reduction::Sum | Reduction::Or => 0.0,
        Reduction::Product | Reduction::And => 1.0,
        Reduction::Max => f64::NEG_INFINITY,
    }
}
