//! Slices, static and dynamic.

use safetensors::Dtype;

use super::attributes::i64_array;
use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_integer},
};

impl Graph {
    /// Returns `x[start..limit]` in every dimension.
    pub fn slice(&mut self, x: Tensor, start: &[usize], limit: &[usize]) -> Tensor {
        let strides = vec![1; start.len()];
        self.slice_strided(x, start, limit, &strides)
    }

    /// Returns `x[start..limit]` along one dimension. Adds no op if that is the whole dimension.
    pub fn slice_dimension(&mut self, x: Tensor, dimension: usize, start: usize, limit: usize) -> Tensor {
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) {
            return x;
        }
        if dimension >= ty.rank() {
            return self
                .fail("stablehlo.slice", format!("found dimension {dimension}, expected one of {ty}"));
        }
        if start == 0 && limit == ty.shape[dimension] {
            return x;
        }
        let mut starts = vec![0; ty.rank()];
        let mut limits = ty.shape;
        starts[dimension] = start;
        limits[dimension] = limit;
        let is_last = dimension + 1 == limits.len();
        let slice = self.slice(x, &starts, &limits);
        if is_last && !Self::poisoned(&[slice]) {
            let (whole, first) = self.columns_of(x);
            self.columns.insert(slice, (whole, first + start));
        }
        slice
    }

    /// Returns every `strides[i]`-th element of `x[start..limit]`.
    pub fn slice_strided(
        &mut self,
        x: Tensor,
        start: &[usize],
        limit: &[usize],
        strides: &[usize],
    ) -> Tensor {
        const OP: &str = "stablehlo.slice";
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) {
            return x;
        }
        let rank = ty.rank();
        let fits = [start.len(), limit.len(), strides.len()] == [rank; 3]
            && (0..rank).all(|d| start[d] <= limit[d] && limit[d] <= ty.shape[d] && strides[d] > 0);
        if !fits {
            return self
                .fail(OP, format!("found [{start:?}, {limit:?}) by {strides:?}, expected a range of {ty}"));
        }
        let shape: Vec<_> = (0..rank).map(|d| (limit[d] - start[d]).div_ceil(strides[d])).collect();
        let attributes = vec![
            ("start_indices", i64_array(start)),
            ("limit_indices", i64_array(limit)),
            ("strides", i64_array(strides)),
        ];
        self.op(OP, &[x], attributes, TensorType::new(ty.dtype, shape))
    }

    /// Returns `sizes` elements from `starts`, integer scalars that are clamped so that the slice is inside.
    pub fn dynamic_slice(&mut self, x: Tensor, starts: &[Tensor], sizes: &[usize]) -> Tensor {
        const OP: &str = "stablehlo.dynamic_slice";
        let ty = self.type_of(x);
        let operands: Vec<_> = std::iter::once(x).chain(starts.iter().copied()).collect();
        if Self::poisoned(&operands) {
            return Self::poison();
        }
        if let Err(problem) = self.check_window(&ty, starts, sizes) {
            return self.fail(OP, problem);
        }
        let attributes = vec![("slice_sizes", i64_array(sizes))];
        self.op(OP, &operands, attributes, TensorType::new(ty.dtype, sizes))
    }

    /// Returns `x` with `update` at `starts`, integer scalars that are clamped so that the update is inside.
    pub fn dynamic_update_slice(&mut self, x: Tensor, update: Tensor, starts: &[Tensor]) -> Tensor {
        const OP: &str = "stablehlo.dynamic_update_slice";
        let (ty, part) = (self.type_of(x), self.type_of(update));
        let operands: Vec<_> = [x, update].into_iter().chain(starts.iter().copied()).collect();
        if Self::poisoned(&operands) {
            return Self::poison();
        }
        if ty.dtype != part.dtype {
            return self.fail(OP, format!("found update {part}, expected the element type of {ty}"));
        }
        if let Err(problem) = self.check_window(&ty, starts, &part.shape) {
            return self.fail(OP, problem);
        }
        self.op(OP, &operands, vec![], ty)
    }

    /// Checks a window of `sizes` at `starts` in a tensor of type `ty`.
    fn check_window(&self, ty: &TensorType, starts: &[Tensor], sizes: &[usize]) -> Result<(), String> {
        let rank = ty.rank();
        if starts.len() != rank || sizes.len() != rank || sizes.iter().zip(&ty.shape).any(|(n, m)| n > m) {
            return Err(format!(
                "found {} starts and sizes {sizes:?}, expected a window of {ty}",
                starts.len()
            ));
        }
        let scalar = |start: &Tensor| {
            let index = self.type_of(*start);
            is_integer(index.dtype) && index.shape.is_empty()
        };
        if let Some(start) = starts.iter().find(|start| !scalar(start)) {
            let expected = TensorType::new(Dtype::I32, []);
            return Err(format!(
                "found start {}, expected an integer scalar such as {expected}",
                self.type_of(*start)
            ));
        }
        let types: Vec<_> = starts.iter().map(|&start| self.type_of(start)).collect();
        if let Some(pair) = types.windows(2).find(|pair| pair[0] != pair[1]) {
            return Err(format!("found starts {} and {}, expected one type", pair[0], pair[1]));
        }
        Ok(())
    }
}
