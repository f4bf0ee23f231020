//! Gather and scatter.

use super::attributes::{are_distinct, i64_array, list};
use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_integer},
};

/// The dimension numbers of a gather, as in the StableHLO specification.
#[derive(Debug, Clone, Default)]
pub struct GatherDimensions<'a> {
    /// Result dimensions that index the slice.
    pub offset: &'a [usize],
    /// Operand dimensions of slice size 1 that the result drops.
    pub collapsed_slice: &'a [usize],
    /// The operand dimension of each component of an index.
    pub start_index_map: &'a [usize],
    /// The dimension of the indices that contains an index's components.
    pub index_vector: usize,
}

/// The dimension numbers of a scatter, as in the StableHLO specification.
#[derive(Debug, Clone, Default)]
pub struct ScatterDimensions<'a> {
    /// Update dimensions that index the window.
    pub update_window: &'a [usize],
    /// Operand dimensions of window size 1 that the updates do not have.
    pub inserted_window: &'a [usize],
    /// The operand dimension of each component of an index.
    pub scatter_to_operand: &'a [usize],
    /// The dimension of the indices that contains an index's components.
    pub index_vector: usize,
}

impl Graph {
    /// Returns slices of `x` at `indices`, which are clamped to the range.
    pub fn gather(
        &mut self,
        x: Tensor,
        indices: Tensor,
        dims: &GatherDimensions<'_>,
        sizes: &[usize],
    ) -> Tensor {
        const OP: &str = "stablehlo.gather";
        if Self::poisoned(&[x, indices]) {
            return Self::poison();
        }
        let (ty, at) = (self.type_of(x), self.type_of(indices));
        if !is_integer(at.dtype) {
            return self.fail(OP, format!("found indices {at}, expected integers"));
        }
        let slices_fit = sizes.len() == ty.rank() && sizes.iter().zip(&ty.shape).all(|(n, m)| n <= m);
        let kept: Vec<_> = (0..ty.rank()).filter(|d| !dims.collapsed_slice.contains(d)).collect();
        let batch = batch(&at, dims.index_vector);
        let valid = slices_fit
            && components(&at, dims.index_vector) == Some(dims.start_index_map.len())
            && kept.len() == dims.offset.len()
            && dims.offset.is_sorted()
            && are_distinct(dims.offset, batch.len() + kept.len())
            && are_distinct(dims.start_index_map, ty.rank())
            && are_distinct(dims.collapsed_slice, ty.rank())
            && dims.collapsed_slice.iter().all(|&d| sizes.get(d) == Some(&1));
        if !valid {
            return self.fail(
                OP,
                format!("found {ty}, indices {at}, slices {sizes:?}, expected them to fit {dims:?}"),
            );
        }
        let shape = interleave(batch, kept.iter().map(|&d| sizes[d]).collect(), dims.offset);
        let numbers = format!(
            "#stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{}], start_index_map = [{}], \
             index_vector_dim = {}>",
            list(dims.offset),
            list(dims.collapsed_slice),
            list(dims.start_index_map),
            dims.index_vector
        );
        let attributes = vec![
            ("dimension_numbers", numbers),
            ("slice_sizes", i64_array(sizes)),
            ("indices_are_sorted", "false".to_owned()),
        ];
        self.op(OP, &[x, indices], attributes, TensorType::new(ty.dtype, shape))
    }

    /// Looks up rows of `table`, `[rows, …]`. The result has the dimensions of `indices`, then those of a row.
    pub fn take_rows(&mut self, table: Tensor, indices: Tensor) -> Tensor {
        let (ty, at) = (self.type_of(table), self.type_of(indices));
        if Self::poisoned(&[table, indices]) || ty.rank() == 0 {
            return self.fail("stablehlo.gather", format!("found {ty}, expected a table of rows"));
        }
        let mut sizes = ty.shape;
        sizes[0] = 1;
        let offset: Vec<_> = (at.rank()..at.rank() + sizes.len() - 1).collect();
        let dims = GatherDimensions {
            offset: &offset,
            collapsed_slice: &[0],
            start_index_map: &[0],
            index_vector: at.rank(),
        };
        self.gather(table, indices, &dims, &sizes)
    }

    /// Returns `x` with `updates` at `indices`, combined with the old elements by `combine(old, new)`. Updates outside are dropped.
    pub fn scatter(
        &mut self,
        x: Tensor,
        indices: Tensor,
        updates: Tensor,
        dims: &ScatterDimensions<'_>,
        combine: impl FnOnce(&mut Self, Tensor, Tensor) -> Tensor,
    ) -> Tensor {
        const OP: &str = "stablehlo.scatter";
        if Self::poisoned(&[x, indices, updates]) {
            return Self::poison();
        }
        let (ty, at, new) = (self.type_of(x), self.type_of(indices), self.type_of(updates));
        if !updates_fit(&ty, &at, &new, dims) {
            return self
                .fail(OP, format!("found {ty}, indices {at}, updates {new}, expected them to fit {dims:?}"));
        }
        let scalar = TensorType::new(ty.dtype, []);
        let body = self.region(&[scalar.clone().into(), scalar.clone().into()], |g, values| {
            vec![combine(g, values[0], values[1])]
        });
        let combined = self.type_of(body.results[0]);
        if !Self::poisoned(&body.results) && combined != scalar {
            return self.fail(OP, format!("found combination {combined}, expected {scalar}"));
        }
        let numbers = format!(
            "#stablehlo.scatter<update_window_dims = [{}], inserted_window_dims = [{}], \
             scatter_dims_to_operand_dims = [{}], index_vector_dim = {}>",
            list(dims.update_window),
            list(dims.inserted_window),
            list(dims.scatter_to_operand),
            dims.index_vector
        );
        let attributes = vec![
            ("scatter_dimension_numbers", numbers),
            ("indices_are_sorted", "false".to_owned()),
            ("unique_indices", "false".to_owned()),
        ];
        self.op_with_regions(OP, &[x, indices, updates], attributes, vec![body], vec![ty.into()])[0]
    }
}

/// Returns whether a scatter at `indices` into `x` takes `updates`.
fn updates_fit(
    x: &TensorType,
    indices: &TensorType,
    updates: &TensorType,
    dims: &ScatterDimensions<'_>,
) -> bool {
    let kept = (0..x.rank()).filter(|d| !dims.inserted_window.contains(d));
    let scattered: Vec<_> =
        (0..updates.rank()).filter(|d| !dims.update_window.contains(d)).map(|d| updates.shape[d]).collect();
    x.dtype == updates.dtype
        && is_integer(indices.dtype)
        && components(indices, dims.index_vector) == Some(dims.scatter_to_operand.len())
        && dims.update_window.is_sorted()
        && are_distinct(dims.update_window, updates.rank())
        && are_distinct(dims.inserted_window, x.rank())
        && are_distinct(dims.scatter_to_operand, x.rank())
        && dims.update_window.len() + dims.inserted_window.len() == x.rank()
        && dims.update_window.iter().zip(kept).all(|(&window, d)| updates.shape[window] <= x.shape[d])
        && scattered == batch(indices, dims.index_vector)
}

/// Returns the number of components of an index, or `None` if there is no such dimension.
fn components(indices: &TensorType, index_vector: usize) -> Option<usize> {
    if index_vector == indices.rank() { Some(1) } else { indices.shape.get(index_vector).copied() }
}

/// Returns the sizes of the dimensions of `indices` other than the components'.
fn batch(indices: &TensorType, index_vector: usize) -> Vec<usize> {
    (0..indices.rank()).filter(|&d| d != index_vector).map(|d| indices.shape[d]).collect()
}

/// Returns the shape of a gather's result: `slice` at the dimensions `offset`, `batch` at the others, each in order.
fn interleave(batch: Vec<usize>, slice: Vec<usize>, offset: &[usize]) -> Vec<usize> {
    let rank = batch.len() + slice.len();
    let (mut batch, mut slice) = (batch.into_iter(), slice.into_iter());
    (0..rank).filter_map(|d| if offset.contains(&d) { slice.next() } else { batch.next() }).collect()
}
