//! Attention by kernels on CPUs, which write and read pages of the cache in place.

use mlxcel_artifacts::{CacheType, Float, entry::PAGE};
use mlxcel_models::{Attention, Pairs};
use safetensors::Dtype;

use super::sequence::{Division, Rows};
use crate::{
    graph::{HostIndex, Tensor},
    kernels::{
        self, Append, AttentionChunks, AttentionCombine, AttentionMask, AttentionShape, CachedKeyValues,
        F32Bits, Grid, Isa, KeyRows, Overwritten, QueryRows, RowTables, ValueRows,
    },
    layers::{builder::Builder, cache::LayerCache, rope::Rotation},
    types::TensorType,
};

/// The parts into which the work of a call is divided. Each does its share, so that more threads than these are idle.
const ITEMS: usize = 64;

/// Positions of a chunk, as in `attention.c`.
const CHUNK: usize = 1024;

/// The most rows whose positions are divided into chunks, to give every core some work. More rows are enough work.
const MAX_CHUNKED_ROWS: usize = 16;

/// Returns the instruction set of the kernels for this layer, if there are any.
pub(super) fn isa(b: &Builder<'_>, layer: &Attention, rows: &Rows) -> Option<Isa> {
    let fits =
        |_: &Isa| layer.head_dim <= kernels::MAX_HEAD_DIM && matches!(rows.division, Division::Ragged { .. });
    b.numerics.cpu_isa().filter(fits)
}

/// Rotates queries and keys, appends keys and values to the cache, and attends: `[1, rows, heads · head_dim]` to
/// `[1, rows, heads, head_dim]`.
pub(super) fn append_and_attend(
    b: &mut Builder<'_>,
    isa: Isa,
    layer: &Attention,
    [query, key, value]: [Tensor; 3],
    rotation: Option<Rotation>,
    (cache, rows): (&mut LayerCache<'_>, &Rows),
) -> Tensor {
    let Division::Ragged { begins, starts } = rows.division else { return query };
    let tables = RowTables { begins, starts, pages: cache.table().pages };
    let (&[_, count, _], &[sequences, table]) = (b.graph.shape(query), b.graph.shape(tables.pages)) else {
        return query;
    };
    let &Attention { heads, kv_heads, head_dim, .. } = layer;
    // Parts of one product are read where they are.
    let [(q, q_offset), (k, k_offset), (v, v_offset)] = [query, key, value].map(|x| b.graph.columns_of(x));
    let [q_stride, k_stride, v_stride] = [q, k, v].map(|x| b.graph.shape(x).last().copied().unwrap_or(1));
    let shape = AttentionShape {
        rows: count,
        sequences,
        heads,
        kv_heads,
        head_dim,
        parts: cache.parts(&b.graph),
        table,
    };
    let number = b.graph.host_number(cache.index());
    let any = b.graph.full(0.0, Dtype::F32, &[1]);
    let (cos, sin) = rotation.map_or((any, any), |rotation| (rotation.cos, rotation.sin));
    let rope_width = rotation.map_or(0, |rotation| 2 * b.graph.shape(rotation.cos)[2]);
    let items = kv_heads * count.div_ceil(PAGE);
    let append = Append {
        q,
        k,
        v,
        cos,
        sin,
        tables: tables.clone(),
        cache: Overwritten(key_values(cache)),
        q_out: TensorType::new(Dtype::F32, [1, count, heads, head_dim]),
        layer: number,
        shape: shape.clone(),
        query_rows: QueryRows { q_stride, q_offset },
        key_rows: KeyRows { k_stride, k_offset },
        value_rows: ValueRows { v_stride, v_offset },
        rope_width,
        interleaved: rotation.is_some_and(|rotation| rotation.pairs == Pairs::Interleaved),
        // Weights are powers of two.
        q_scale: F32Bits(layer.scale * std::f64::consts::LOG2_E),
        items,
    };
    let made =
        b.module.call(&mut b.graph, isa, append, Grid { items, grain: if count == 1 { items } else { 1 } });
    let Some((&query, written)) = made.split_first() else { return query };
    cache.replace(written);
    let sinks = layer.sinks.as_ref().map(|sinks| b.weight_f32(sinks));
    let call = AttentionCall {
        isa,
        query,
        cached: key_values(cache),
        tables,
        layer: number,
        shape,
        mask: AttentionMask {
            window: layer.window.unwrap_or(0),
            soft_cap: F32Bits(layer.soft_cap.unwrap_or(0.0)),
            causal: layer.causal,
        },
        sinks: sinks.unwrap_or(any),
        has_sinks: sinks.is_some(),
    };
    call.attend(b)
}

/// A call of the kernel that attends.
struct AttentionCall {
    isa: Isa,
    query: Tensor,
    cached: CachedKeyValues,
    tables: RowTables,
    layer: HostIndex,
    shape: AttentionShape,
    mask: AttentionMask,
    sinks: Tensor,
    has_sinks: bool,
}

impl AttentionCall {
    /// Attends to whole sequences, or to chunks of them if there are few rows and many positions.
    fn attend(self, b: &mut Builder<'_>) -> Tensor {
        let Self { isa, query: q, cached: cache, tables, layer, shape, mask, sinks, has_sinks } = self;
        let AttentionShape { rows, sequences, heads, head_dim, table, .. } = shape;
        let out = TensorType::new(Dtype::F32, [1, rows, heads, head_dim]);
        let all = (table * PAGE).div_ceil(CHUNK);
        // A window begins within a chunk and ends within one.
        let chunks = if mask.window > 0 { all.min(mask.window.div_ceil(CHUNK) + 1) } else { all };
        let grid = Grid { items: ITEMS, grain: 1 };
        let g = &mut b.graph;
        if rows > MAX_CHUNKED_ROWS || chunks == 1 {
            let attention = kernels::Attention {
                q,
                cache,
                sinks,
                tables,
                out,
                layer,
                shape,
                mask,
                has_sinks,
                items: ITEMS,
            };
            return b.module.call(g, isa, attention, grid)[0];
        }
        let RowTables { begins, starts, pages: _ } = tables;
        let AttentionMask { window, causal, .. } = mask;
        let partial = TensorType::new(Dtype::F32, [rows, chunks, heads, head_dim]);
        let max_sum = TensorType::new(Dtype::F32, [rows, chunks, heads, 2]);
        let attention =
            AttentionChunks { q, cache, tables, partial, max_sum, layer, shape, mask, chunks, items: ITEMS };
        let made = b.module.call(g, isa, attention, grid);
        let (partial, max_sum) = (made[0], made[1]);
        let combine = AttentionCombine {
            partial,
            max_sum,
            sinks,
            begins,
            starts,
            out,
            chunks,
            rows,
            sequences,
            heads,
            head_dim,
            window,
            causal,
            has_sinks,
        };
        let items = rows * heads;
        b.module.call(g, isa, combine, Grid { items, grain: if rows == 1 { items } else { heads } })[0]
    }
}

/// Returns the tensors of a cache by its element type.
pub(super) fn key_values(cache: &LayerCache<'_>) -> CachedKeyValues {
    let tensors = cache.tensors();
    match (cache.cache_type(), tensors) {
        (CacheType::Q8, &[cache, scales]) => CachedKeyValues::Q8 { cache, scales },
        (CacheType::Float(Float::Bf16), _) => CachedKeyValues::Bf16(tensors[0]),
        (CacheType::Float(Float::F16), _) => CachedKeyValues::F16(tensors[0]),
        (CacheType::Float(Float::F32) | CacheType::Q8, _) => CachedKeyValues::F32(tensors[0]),
    }
}
