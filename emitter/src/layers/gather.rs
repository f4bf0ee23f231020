//! Rows of tables, by their indices.

use safetensors::Dtype;

use super::builder::Builder;
use crate::{
    graph::Tensor,
    kernels::{CudaGather, GatherRows, Grid, Isa, Kernel, ROW_ELEMENTS},
    types::TensorType,
};

/// Elements that a workgroup looks up at least: fewer would not be worth one.
const WORKGROUP_ELEMENTS: usize = 4096;

/// Threads of a workgroup on GPUs, which has a row: `THREADS` of `cuda/gather.c`.
const GPU_THREADS: usize = 256;

/// Returns rows of `table`, `[.., width]` in `f32`: `[rows]` ids to `[rows, width]`.
pub(crate) fn gather_rows(b: &mut Builder<'_>, table: Tensor, ids: Tensor) -> Tensor {
    let &[_, width] = b.graph.shape(table) else { return table };
    let gpu = gpu_gather(b, table, ids);
    match (b.numerics.cpu_isa(), gpu) {
        (_, Some(rows)) => rows,
        (Some(isa), None) => {
            call(b, isa, ids, width, |count, out| GatherRows { table, ids, count, out, width })
        }
        (None, None) => {
            let rows = b.graph.take_rows(table, ids);
            // Fused with the norm, the gathered rows exceed IREE's stack limit.
            b.graph.barrier(rows)
        }
    }
}

/// Returns rows of a table by a GPU's kernel, if it reads the table.
fn gpu_gather(b: &mut Builder<'_>, table: Tensor, ids: Tensor) -> Option<Tensor> {
    let (isa, &[rows, width]) = (b.numerics.gpu?, b.graph.shape(table)) else { return None };
    if !width.is_multiple_of(ROW_ELEMENTS) || b.graph.dtype(table) != Dtype::F32 {
        return None;
    }
    let count = b.graph.shape(ids).iter().product();
    let out = TensorType::new(Dtype::F32, [count, width]);
    let gather = CudaGather { table, ids, out, rows, width };
    Some(b.module.call(&mut b.graph, isa, gather, Grid { items: count, grain: GPU_THREADS })[0])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernel() {
        assert_eq!(stated_constant("cuda_gather", "threads"), Some(GPU_THREADS));
    }
}
