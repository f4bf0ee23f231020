//! Calls in place on GPUs: their numbers go to the device's own memory first, and their results to arguments.

use mlxcel_models::ModelConfig;
use safetensors::Dtype;

use crate::{
    graph::Tensor,
    kernels::{Copy, Grid, Isa, Stage},
    layers::{
        attention::{PageTable, counters},
        builder::Builder,
        cache::{PoolValue, Staged},
    },
    scratch,
    types::TensorType,
};

/// Threads of a workgroup of `kernels/cuda/stage.c` and of `copy.c`.
const THREADS: usize = 256;

/// Copies positions, `[sequences, rows]`, and the page tables of pools to the device, and returns the positions.
pub(super) fn stage(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    positions: Tensor,
    pools: &mut [PoolValue],
) -> Tensor {
    let Some(isa) = b.numerics.gpu else { return positions };
    let shape = b.graph.shape(positions).to_vec();
    let rows = shape.iter().product();
    let of_block = |block: &mlxcel_models::Block| counters(&block.attention.layer);
    let counters = model.blocks.iter().map(of_block).max().unwrap_or(1);
    let mut own_positions = positions;
    for pool in pools {
        let PageTable { pages, first_pages, slots } = pool.table;
        let (Some(slots), &[sequences, table]) = (slots, b.graph.shape(pages)) else { return positions };
        let numbers = |shape: &[usize]| TensorType::new(Dtype::I32, shape);
        let staged = Stage {
            positions,
            slots,
            pages,
            first_pages: first_pages.unwrap_or(slots),
            own_positions: numbers(&shape),
            row_numbers: numbers(&[3, rows]),
            own_pages: numbers(&[sequences, table]),
            counters: numbers(&[sequences * counters]),
            rows,
            entries: sequences * table,
            sequences: if first_pages.is_some() { sequences } else { 0 },
            count: sequences * counters,
        };
        let made = b.module.call(&mut b.graph, isa, staged, Grid { items: 1, grain: THREADS });
        let &[staged, row_numbers, pages, counters] = made.as_slice() else { return positions };
        pool.table = PageTable { pages, ..pool.table };
        pool.staged = Some(Staged { row_numbers, counters });
        b.row_numbers = Some(row_numbers);
        own_positions = staged;
    }
    own_positions
}

/// Makes a call in place write `results` to `arguments` of the same types. If it is a decode step, which is often called, or if
/// kernels compute everything, what they make has a place of its own too.
pub(super) fn place_results(
    b: &mut Builder<'_>,
    results: &mut [Tensor],
    arguments: &[Tensor],
    is_decode: bool,
) {
    let Some(isa) = b.numerics.gpu else { return };
    for result in results.iter_mut() {
        if !b.graph.is_made_by_kernel(*result) {
            *result = copied(b, isa, *result);
        }
    }
    let places: Vec<_> = results.iter().copied().zip(arguments.iter().copied()).collect();
    b.graph.keep_only(results);
    scratch::place(b.module, &mut b.graph, &places, is_decode);
}

/// Copies a result by a kernel.
fn copied(b: &mut Builder<'_>, isa: Isa, x: Tensor) -> Tensor {
    let to = b.graph.type_of(x);
    let count = to.elements();
    let copy = Copy { from: x, to, count };
    let grid = Grid { items: count.div_ceil(THREADS), grain: THREADS };
    b.module.call(&mut b.graph, isa, copy, grid)[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        for function in ["cuda_stage", "cuda_copy_f32"] {
            assert_eq!(stated_constant(function, "threads"), Some(THREADS), "{function}");
        }
    }
}
