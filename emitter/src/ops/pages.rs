//! Pages of a cache, `[pages, 2 · layers, kv_heads, 64, …]`, whose number is known when a function runs.

use safetensors::Dtype;

use super::gather::GatherDimensions;
use crate::{
    graph::{Graph, Tensor},
    types::{DYNAMIC, TensorType},
};

impl Graph {
    /// Returns the pages `table`, `[…]`, of one part of the cache: `[…, kv_heads, 64, …]`. `part` is an `i32` scalar.
    pub(crate) fn take_pages(&mut self, cache: Tensor, table: Tensor, part: Tensor) -> Tensor {
        let (ty, at) = (self.type_of(cache), self.type_of(table));
        let vector = [at.shape.as_slice(), &[1]].concat();
        let pages = self.reshape(table, &vector);
        let part = self.broadcast_in_dim(part, &vector, &[]);
        let indices = self.concatenate(&[pages, part], at.rank());
        let offset: Vec<_> = (at.rank()..(at.rank() + ty.rank()).saturating_sub(2)).collect();
        let dims = GatherDimensions {
            offset: &offset,
            collapsed_slice: &[0, 1],
            start_index_map: &[0, 1],
            index_vector: at.rank(),
        };
        let sizes: Vec<_> = [1, 1].into_iter().chain(ty.shape.iter().copied().skip(2)).collect();
        self.gather(cache, indices, &dims, &sizes)
    }

    /// Returns the cache with `rows`, `[n, width]`, at `indices`, `[n]`, which count rows of `width` from the first page on.
    ///
    /// Of two rows at one index any may be written.
    pub(crate) fn write_rows(&mut self, cache: Tensor, indices: Tensor, rows: Tensor) -> Tensor {
        const OP: &str = "stablehlo.scatter";
        if Self::poisoned(&[cache, indices, rows]) {
            return Self::poison();
        }
        let (ty, at, new) = (self.type_of(cache), self.type_of(indices), self.type_of(rows));
        let (Some(extent), Some(&width)) = (self.extent(cache), ty.shape.last()) else {
            return self.fail(OP, format!("found {ty}, expected a cache"));
        };
        let fits = at.dtype == Dtype::I32
            && new.dtype == ty.dtype
            && matches!((&*at.shape, &*new.shape), (&[a], &[b, wide]) if a == b && wide == width);
        if !fits {
            return self.fail(OP, format!("found rows {new} at {at}, expected rows of {ty}"));
        }
        let groups: Vec<_> = (0..ty.rank() - 1).map(|d| d.to_string()).collect();
        let reassociation = format!("[[{}], [{}]]", groups.join(", "), ty.rank() - 1);
        let flat = TensorType::new(ty.dtype, [DYNAMIC, width]);
        let attributes = vec![("reassociation", reassociation.clone())];
        let all = self.op("tensor.collapse_shape", &[cache], attributes, flat.clone());
        let scalar = TensorType::new(ty.dtype, []);
        let body = self.region(&[scalar.clone().into(), scalar.into()], |_, values| vec![values[1]]);
        let vector = [at.shape[0], 1];
        let indices = self.reshape(indices, &vector);
        let numbers = "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], \
                       scatter_dims_to_operand_dims = [0], index_vector_dim = 1>";
        let attributes = vec![
            ("scatter_dimension_numbers", numbers.to_owned()),
            ("indices_are_sorted", "false".to_owned()),
            ("unique_indices", "true".to_owned()),
        ];
        let written =
            self.op_with_regions(OP, &[all, indices, rows], attributes, vec![body], vec![flat.into()])[0];
        let sizes = ty.shape.iter().skip(1).map(|size| format!(", {size}")).collect::<String>();
        let attributes = vec![
            ("reassociation", reassociation),
            // The least i64 stands for a dimension that is an operand.
            ("static_output_shape", format!("array<i64: {}{sizes}>", i64::MIN)),
        ];
        let whole = self.op("tensor.expand_shape", &[written, extent.0], attributes, ty);
        self.set_extent(whole, cache);
        whole
    }

    /// Returns a tensor whose elements are not determined.
    pub(crate) fn uninitialized(&mut self, dtype: Dtype, shape: &[usize]) -> Tensor {
        self.op("tensor.empty", &[], vec![], TensorType::new(dtype, shape))
    }
}
