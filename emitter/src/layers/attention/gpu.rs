//! Attention of decode steps by kernels on GPUs, which read pages of the cache in place.

use mlxcel_models::Attention;
use safetensors::Dtype;

use super::{
    kernel::{MAX_HEAD_DIM, key_values},
    sequence::PageTable,
};
use crate::{
    graph::Tensor,
    kernels::{CudaAttention, CudaAttentionCombine, CudaAttentionShape, CudaPageTable, F32Bits, Grid, Isa},
    layers::{builder::Builder, cache::LayerCache},
    types::TensorType,
};

/// Kernels require heads with a multiple of so many dimensions: `VECTOR` of `cuda/attention.h`.
const VECTOR: usize = 8;

/// Threads of a workgroup: `THREADS` of `cuda/attention.h`.
const THREADS: usize = 256;

/// Heads of a workgroup, for heads of up to `NARROW` dimensions and for wider ones: as in `cuda/attention.h`.
const NARROW: usize = 128;
const NARROW_ROWS: usize = 4;
const WIDE_ROWS: usize = 2;

/// The number of workgroups that keeps a large GPU busy.
const WORKGROUPS: usize = 256;

/// The most chunks, because merging more costs more than they gain: `MAX_CHUNKS` of `cuda/attention_combine.c`.
const MAX_CHUNKS: usize = 32;

/// Returns the instruction set of the kernels for this layer, if there are any. They are for one row of each sequence.
pub(super) fn isa(b: &Builder<'_>, layer: &Attention, tokens: usize) -> Option<Isa> {
    let has_size = layer.head_dim <= MAX_HEAD_DIM && layer.head_dim.is_multiple_of(VECTOR);
    b.numerics.gpu.filter(|_| tokens == 1 && layer.causal && has_size)
}

/// Computes softmax attention of rotated `query`, `[sequences, 1, heads, head_dim]`, to the pages of each sequence up to the
/// row's position: `f32`, in the shape of `query`.
pub(super) fn attend_to_pages(
    b: &mut Builder<'_>,
    isa: Isa,
    layer: &Attention,
    query: Tensor,
    cache: &LayerCache<'_>,
    positions: Tensor,
) -> Tensor {
    let PageTable { pages, first_pages, slots: _ } = cache.table();
    let (&[sequences, tokens, heads, head_dim], &[_, table]) = (b.graph.shape(query), b.graph.shape(pages))
    else {
        return query;
    };
    let kv_heads = layer.kv_heads;
    let parts = cache.parts(&b.graph);
    let WorkDivision { rows, tiles, chunks } = WorkDivision::new(layer, sequences);
    // Weights are powers of two.
    let q = b.graph.scale(query, layer.scale * std::f64::consts::LOG2_E);
    let attention = CudaAttention {
        q,
        cache: key_values(cache),
        positions,
        tables: CudaPageTable { pages, first_pages: first_pages.unwrap_or(pages) },
        partial: TensorType::new(Dtype::F32, [sequences, chunks, heads, head_dim]),
        max_sum: TensorType::new(Dtype::F32, [sequences, chunks, heads, 2]),
        layer: b.graph.host_number(cache.index()),
        shape: CudaAttentionShape { sequences, heads, kv_heads, head_dim, parts, table },
        rows,
        window: layer.window.unwrap_or(0),
        soft_cap: F32Bits(layer.soft_cap.unwrap_or(0.0)),
        chunks,
        has_first_pages: first_pages.is_some(),
    };
    let items = sequences * chunks * tiles * kv_heads;
    let made = b.module.call(&mut b.graph, isa, attention, Grid { items, grain: THREADS });
    let &[partial, max_sum] = made.as_slice() else { return query };
    let sinks = layer.sinks.as_ref().map(|sinks| b.weight_f32(sinks));
    let combine = CudaAttentionCombine {
        partial,
        max_sum,
        sinks: sinks.unwrap_or(max_sum),
        out: TensorType::new(Dtype::F32, [sequences, tokens, heads, head_dim]),
        chunks,
        heads,
        head_dim,
        has_sinks: sinks.is_some(),
    };
    b.module.call(&mut b.graph, isa, combine, Grid { items: sequences * heads, grain: THREADS })[0]
}

/// How the work of a call is divided among workgroups.
struct WorkDivision {
    /// Heads of a workgroup.
    rows: usize,
    /// Workgroups that share the heads of a kv head.
    tiles: usize,
    /// The number of chunks of positions.
    chunks: usize,
}

impl WorkDivision {
    fn new(layer: &Attention, sequences: usize) -> Self {
        let group = layer.heads.checked_div(layer.kv_heads).unwrap_or(0).max(1);
        let rows = if layer.head_dim <= NARROW { NARROW_ROWS } else { WIDE_ROWS };
        let tiles = group.div_ceil(rows);
        let workgroups = (tiles * sequences * layer.kv_heads).max(1);
        Self { rows, tiles, chunks: WORKGROUPS.div_ceil(workgroups).min(MAX_CHUNKS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        let names = ["threads", "vector", "narrow", "narrow_rows", "wide_rows"];
        let expected = [THREADS, VECTOR, NARROW, NARROW_ROWS, WIDE_ROWS];
        for kind in ["f32", "bf16", "f16", "q8"] {
            let file = format!("attention_{kind}");
            assert_eq!(names.map(|name| stated_constant(&file, name)), expected.map(Some), "{file}");
        }
        let found = ["threads", "chunks"].map(|name| stated_constant("attention_combine", name));
        assert_eq!(found, [THREADS, MAX_CHUNKS].map(Some));
    }
}
