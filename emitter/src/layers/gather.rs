//! Rows of tables, by their indices.

use safetensors::Dtype;

use super::builder::Builder;
use crate::{
    graph::Tensor,
    kernels::{GatherRows, Grid, Isa, Kernel},
    types::TensorType,
};

/// Elements that a workgroup looks up at least: fewer would not be worth one.
const WORKGROUP_ELEMENTS: usize = 4096;

/// Returns rows of `table`, `[.., width]` in `f32`: `[rows]` ids to `[rows, width]`.
pub(crate) fn gather_rows(b: &mut Builder<'_>, table: Tensor, ids: Tensor) -> Tensor {
    let &[_, width] = b.graph.shape(table) else { return table };
    match b.numerics.cpu_isa() {
        Some(isa) => call(b, isa, ids, width, |count, out| GatherRows { table, ids, count, out, width }),
        None => {
            let rows = b.graph.take_rows(table, ids);
            // Fused with the norm, the gathered rows exceed IREE's stack limit.
            b.graph.barrier(rows)
        }
    }
}

/// Calls a kernel with the number of rows that are not padding and the type of its result, `[…, width]` in `f32` for `ids` of
/// `[…]`.
pub(in crate::layers) fn call<K: Kernel>(
    b: &mut Builder<'_>,
    isa: Isa,
    ids: Tensor,
    width: usize,
    kernel: impl FnOnce(Tensor, TensorType) -> K,
) -> Tensor {
    let mut shape = b.graph.shape(ids).to_vec();
    let rows = shape.iter().product();
    shape.push(width);
    let count = b.lengths(1, rows);
    let grid = Grid { items: rows, grain: (WORKGROUP_ELEMENTS / width.max(1)).max(1) };
    b.module.call(&mut b.graph, isa, kernel(count, TensorType::new(Dtype::F32, shape)), grid)[0]
}
