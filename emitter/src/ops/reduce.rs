//! Reductions.

use safetensors::Dtype;

use super::attributes::{are_distinct, i64_array};
use crate::{
    graph::{Graph, Region, Tensor},
    types::{TensorType, is_float},
};

/// The operation that a reduction combines elements with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The largest element, of floats.
    Max,
    /// The smallest element, of floats.
    Min,
    /// Whether all elements are true.
    And,
    /// Whether any element is true.
    Or,
}

const REDUCE: &str = "stablehlo.reduce";

impl Reduction {
    /// Returns the reduction of a region that combines two elements, or `None` if it does anything else.
    pub(crate) fn of(region: &Region) -> Option<Self> {
        let [op] = region.ops.as_slice() else { return None };
        let in_order = op.operands == region.arguments;
        let swapped = op.operands.iter().rev().eq(&region.arguments);
        if !(in_order || swapped) || op.results != region.results {
            return None;
        }
        Some(match &*op.name {
            "stablehlo.add" => Self::Sum,
            "stablehlo.multiply" => Self::Product,
            "stablehlo.maximum" => Self::Max,
            "stablehlo.minimum" => Self::Min,
            "stablehlo.and" => Self::And,
            "stablehlo.or" => Self::Or,
            _ => return None,
        })
    }

    /// Checks that elements of a tensor can be combined so.
    ///
    /// Integers have no extrema: for GPUs, iree-compile 3.13 pads such reductions with numbers of the wrong sign.
    pub(super) fn check(self, ty: &TensorType) -> Result<(), String> {
        let logical = matches!(self, Self::And | Self::Or);
        if logical != (ty.dtype == Dtype::BOOL) {
            return Err(format!(
                "found {ty} to reduce with {self:?}, expected truth values for and/or alone"
            ));
        }
        let is_extremum = matches!(self, Self::Max | Self::Min);
        if is_extremum && !is_float(ty.dtype) {
            return Err(format!("found {ty} to reduce with {self:?}, expected floats"));
        }
        Ok(())
    }
}

impl Graph {
    /// Combines the elements along `dimensions`, which the result does not have.
    pub fn reduce(&mut self, x: Tensor, reduction: Reduction, dimensions: &[usize]) -> Tensor {
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) {
            return x;
        }
        let mut sorted = dimensions.to_vec();
        sorted.sort_unstable();
        if !are_distinct(dimensions, ty.rank()) {
            return self
                .fail(REDUCE, format!("found dimensions {dimensions:?}, expected different ones of {ty}"));
        }
        if let Err(problem) = reduction.check(&ty) {
            return self.fail(REDUCE, problem);
        }
        self.reduce_any(x, reduction, &sorted)
    }

    /// Reduces elements of any type.
    fn reduce_any(&mut self, x: Tensor, reduction: Reduction, dimensions: &[usize]) -> Tensor {
        let ty = self.type_of(x);
        let shape: Vec<_> = (0..ty.rank()).filter(|d| !dimensions.contains(d)).map(|d| ty.shape[d]).collect();
        let init = self.neutral(reduction, ty.dtype);
        let body = self.reduction_body(reduction, ty.dtype);
        let attributes = vec![("dimensions", i64_array(dimensions))];
        self.op_with_regions(
            REDUCE,
            &[x, init],
            attributes,
            vec![body],
            vec![TensorType::new(ty.dtype, shape).into()],
        )[0]
    }

    /// Returns the neutral element.
    pub(super) fn neutral(&mut self, reduction: Reduction, dtype: Dtype) -> Tensor {
        self.scalar(identity(reduction), dtype)
    }

    /// Returns the region that combines two elements.
    pub(crate) fn reduction_body(&mut self, reduction: Reduction, dtype: Dtype) -> Region {
        let scalar = TensorType::new(dtype, []);
        self.region(&[scalar.clone().into(), scalar.into()], |g, values| {
            let [a, b] = [values[0], values[1]];
            vec![match reduction {
                Reduction::Sum => g.add(a, b),
                Reduction::Product => g.multiply(a, b),
                Reduction::Max => g.maximum(a, b),
                Reduction::Min => g.minimum(a, b),
                Reduction::And => g.and(a, b),
                Reduction::Or => g.or(a, b),
            }]
        })
    }

    /// Combines the elements along `dimensions`, and broadcasts the result to the shape of `x`.
    pub fn reduce_broadcast(&mut self, x: Tensor, reduction: Reduction, dimensions: &[usize]) -> Tensor {
        let shape = self.shape(x).to_vec();
        let reduced = self.reduce(x, reduction, dimensions);
        let kept: Vec<_> = (0..shape.len()).filter(|d| !dimensions.contains(d)).collect();
        self.broadcast_in_dim(reduced, &shape, &kept)
    }

    /// Returns the index of the largest element along the last dimension, `i32`: the lowest one on a tie. If a row contains NaN,
    /// the index is the dimension's size.
    pub fn argmax(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        let Some(last) = ty.rank().checked_sub(1) else {
            return self.fail("argmax", format!("found {ty}, expected a dimension to search"));
        };
        // Two plain reductions in place of one over pairs: each becomes a vector loop.
        let largest = self.reduce_broadcast(x, Reduction::Max, &[last]);
        let hit = self.eq(x, largest);
        self.first_true(hit)
    }

    /// Returns the lowest index along the last dimension at which `x` is true, `i32`. If there is none, the index is the
    /// dimension's size.
    pub fn first_true(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        let (Some(last), Dtype::BOOL) = (ty.rank().checked_sub(1), ty.dtype) else {
            return self
                .fail("first_true", format!("found {ty}, expected truth values with a dimension to search"));
        };
        // The lowest index has the largest distance from the end. For GPUs, iree-compile 3.13 pads integer reductions with the
        // extremes of unsigned numbers, 0 and -1. So only a maximum of numbers that are not negative is right.
        #[expect(clippy::cast_precision_loss, reason = "a vocabulary is below 2^52")]
        let size = ty.shape[last] as f64;
        let ends = self.full(size, Dtype::I32, &ty.shape);
        let index = self.iota(Dtype::I32, &ty.shape, last);
        // The distances of all indices would be a constant, which iree-compile computes with code that it compiles first.
        let index = self.select(x, index, ends);
        let distance = self.subtract(ends, index);
        let farthest = self.reduce_any(distance, Reduction::Max, &[last]);
        let ends = self.full(size, Dtype::I32, &ty.shape[..last]);
        self.subtract(ends, farthest)
    }
}

/// Returns the neutral element. As an integer, an infinity is the type's largest or smallest value.
fn identity(reduction: Reduction) -> f64 {
    match reduction {
        Reduction::Sum | Reduction::Or => 0.0,
        Reduction::Product | Reduction::And => 1.0,
        Reduction::Max => f64::NEG_INFINITY,
        Reduction::Min => f64::INFINITY,
    }
}
