//! Attention by kernels, which read the cache in place, up to each token's own position.

use mlxcel_artifacts::{CacheType, Float};
use mlxcel_models::Attention;
use safetensors::Dtype;

use super::{sequence::Sequence, sinks};
use crate::{
    graph::Tensor,
    kernels::{
        self, AttentionChunks, AttentionCombine, AttentionInputs, AttentionMask, AttentionShape,
        CachedKeyValues, CudaAttention, CudaAttentionCombine, F32Bits, Grid, Isa,
    },
    layers::{builder::Builder, cache::LayerCache},
    types::TensorType,
};

/// The most rows of a workgroup on a CPU. A row is one head of one token; all rows share the keys and values that are
/// converted to `f32`.
const CPU_ROWS: usize = 152;

/// The longest rows that kernels have room for.
const MAX_HEAD_DIM: usize = 256;

/// Kernels for GPUs require row lengths divisible by this: `VECTOR` of `cuda/attention.h`.
const GPU_VECTOR: usize = 8;

/// Positions of a chunk of a decode step on a CPU. Chunks give every core some work if there are few heads.
const CPU_CHUNK: usize = 1024;

/// Threads of a workgroup on a GPU: `THREADS` of `cuda/attention.h`.
const GPU_THREADS: usize = 256;

/// Heads of a workgroup on a GPU, for rows up to `GPU_NARROW` elements and for wider ones: as in `cuda/attention.h`.
const GPU_NARROW: usize = 128;
const GPU_NARROW_ROWS: usize = 4;
const GPU_WIDE_ROWS: usize = 2;

/// The number of workgroups that keeps a large GPU busy.
const GPU_WORKGROUPS: usize = 256;

/// The most chunks on a GPU, because merging more costs more than they gain.
const GPU_MAX_CHUNKS: usize = 32;

/// Returns the instruction set of the kernel that attends to `tokens` tokens, if there is one. Kernels for GPUs are for single
/// tokens.
pub(super) fn isa(b: &Builder<'_>, layer: &Attention, tokens: usize) -> Option<Isa> {
    let fits = |isa: &Isa| {
        layer.head_dim <= MAX_HEAD_DIM
            && (!isa.is_gpu() || tokens == 1 && layer.causal && layer.head_dim.is_multiple_of(GPU_VECTOR))
    };
    b.numerics.attention_isa().filter(fits)
}

/// How the work of a call is divided among workgroups.
struct WorkDivision {
    /// The part of a kv head's work that a workgroup does: tokens on a CPU, heads of the group on a GPU.
    tile: usize,
    /// The number of tiles.
    tiles: usize,
    /// The number of chunks of positions.
    chunks: usize,
}

impl WorkDivision {
    /// Divides attention of `tokens` to `span` positions, by `group` heads for each kv head.
    fn on_cpu([tokens, group]: [usize; 2], span: usize) -> Self {
        let tile = CPU_ROWS.div_ceil(group).min(tokens);
        let chunks = if tokens == 1 { span.div_ceil(CPU_CHUNK) } else { 1 };
        Self { tile, tiles: tokens.div_ceil(tile), chunks }
    }

    /// Divides attention of one token, by `group` heads for each of the `kv_heads` of all rows.
    fn on_gpu([kv_heads, group]: [usize; 2], head_dim: usize) -> Self {
        let tile = if head_dim <= GPU_NARROW { GPU_NARROW_ROWS } else { GPU_WIDE_ROWS };
        let tiles = group.div_ceil(tile);
        let chunks = GPU_WORKGROUPS.div_ceil(tiles * kv_heads).min(GPU_MAX_CHUNKS);
        Self { tile, tiles, chunks }
    }
}

/// Computes softmax attention of scaled `query`, `[batch, tokens, heads, head_dim]`, to a layer's cache: `f32`, in the shape
/// of `query`.
pub(super) fn attend(
    b: &mut Builder<'_>,
    isa: Isa,
    layer: &Attention,
    query: Tensor,
    cache: &LayerCache<'_>,
    sequence: Sequence,
) -> Tensor {
    let &[batch, tokens, heads, head_dim] = b.graph.shape(query) else {
        return query;
    };
    let cached = cache.tensors();
    let Some(&[_, _, kv_heads, capacity, _]) = cached.first().map(|&cached| b.graph.shape(cached)) else {
        return query;
    };
    let lengths = b.lengths(batch, tokens);
    let cached = key_values(cache.cache_type(), &cached);
    let inputs = AttentionInputs { q: query, cache: cached, positions: sequence.start, lengths };
    let shape = AttentionShape { batch, tokens, heads, kv_heads, head_dim, capacity };
    let call = AttentionCall { isa, layer, inputs, shape: shape.clone(), cache_index: cache.index() };
    let chunks = match call.attend(b) {
        Attended::Whole(attended) => return attended,
        Attended::Chunks(chunks) => chunks,
    };
    match &layer.sinks {
        Some(sinks) => sinks::combine(b, sinks, [chunks.sums, chunks.max_sum]),
        None => combine(b, isa, &shape, chunks),
    }
}

/// Returns the tensors of a cache by its element type.
fn key_values(cache_type: CacheType, cached: &[Tensor]) -> CachedKeyValues {
    match (cache_type, cached) {
        (CacheType::Q8, &[cache, scales]) => CachedKeyValues::Q8 { cache, scales },
        (CacheType::Float(Float::Bf16), _) => CachedKeyValues::Bf16(cached[0]),
        (CacheType::Float(Float::F16), _) => CachedKeyValues::F16(cached[0]),
        (CacheType::Float(Float::F32) | CacheType::Q8, _) => CachedKeyValues::F32(cached[0]),
    }
}

/// The result of attention.
enum Attended {
    /// The result, `[batch, tokens, heads, head_dim]`.
    Whole(Tensor),
    Chunks(Chunks),
}

/// Results of chunks of positions, to be merged.
struct Chunks {
    count: usize,
    /// `[batch, chunks, tokens, heads, head_dim]`.
    sums: Tensor,
    /// The largest score, in units of log 2, and the sum of weights: `[batch, chunks, tokens, heads, 2]`.
    max_sum: Tensor,
}

/// A call of the kernel that attends.
struct AttentionCall<'a> {
    isa: Isa,
    layer: &'a Attention,
    inputs: AttentionInputs,
    shape: AttentionShape,
    /// The layer's index in the cache.
    cache_index: usize,
}

impl AttentionCall<'_> {
    /// Calls the kernel. Results are in chunks on GPUs, for long caches, and if the layer has sinks.
    fn attend(self, b: &mut Builder<'_>) -> Attended {
        let Self { isa, layer, inputs, shape, cache_index } = self;
        let AttentionShape { batch, tokens, heads, kv_heads, head_dim, capacity } = shape;
        let span = layer.window.map_or(capacity, |window| capacity.min(window + tokens));
        let group = heads.checked_div(kv_heads).unwrap_or(0).max(1);
        let WorkDivision { tile, tiles, chunks } = if isa.is_gpu() {
            WorkDivision::on_gpu([batch * kv_heads, group], head_dim)
        } else {
            WorkDivision::on_cpu([tokens, group], span)
        };
        let mask = AttentionMask {
            window: layer.window.unwrap_or(0),
            soft_cap: F32Bits(layer.soft_cap.unwrap_or(0.0)),
            causal: layer.causal,
        };
        let items = batch * chunks * tiles * kv_heads;
        let layer_number = b.graph.host_number(cache_index);
        if !isa.is_gpu() && chunks == 1 && layer.sinks.is_none() {
            let out = TensorType::new(Dtype::F32, [batch, tokens, heads, head_dim]);
            let attention = kernels::Attention { inputs, out, layer: layer_number, shape, tile, mask };
            return Attended::Whole(b.module.call(&mut b.graph, isa, attention, Grid { items, grain: 1 })[0]);
        }
        let sums = TensorType::new(Dtype::F32, [batch, chunks, tokens, heads, head_dim]);
        let max_sum = TensorType::new(Dtype::F32, [batch, chunks, tokens, heads, 2]);
        let results = if isa.is_gpu() {
            let (rows, layer) = (tile, layer_number);
            let attention = CudaAttention { inputs, sums, max_sum, layer, shape, rows, mask, chunks };
            b.module.call(&mut b.graph, isa, attention, Grid { items, grain: GPU_THREADS })
        } else {
            let (partial, layer) = (sums, layer_number);
            let chunk = if chunks > 1 { CPU_CHUNK } else { capacity };
            let attention = AttentionChunks { inputs, partial, max_sum, layer, shape, tile, mask, chunk };
            b.module.call(&mut b.graph, isa, attention, Grid { items, grain: 1 })
        };
        Attended::Chunks(Chunks { count: chunks, sums: results[0], max_sum: results[1] })
    }
}

/// Merges chunks by a kernel.
fn combine(b: &mut Builder<'_>, isa: Isa, shape: &AttentionShape, chunks: Chunks) -> Tensor {
    let &AttentionShape { batch, tokens, heads, head_dim, .. } = shape;
    let Chunks { count: chunks, sums, max_sum } = chunks;
    let out = TensorType::new(Dtype::F32, [batch, tokens, heads, head_dim]);
    let (rows, items) = (tokens * heads, batch * tokens * heads);
    let results = if isa.is_gpu() {
        let combine = CudaAttentionCombine { partial_sums: sums, max_sum, out, chunks, rows, head_dim };
        b.module.call(&mut b.graph, isa, combine, Grid { items, grain: GPU_THREADS })
    } else {
        let combine = AttentionCombine { partial: sums, max_sum, out, chunks, rows, head_dim };
        b.module.call(&mut b.graph, isa, combine, Grid { items, grain: items })
    };
    results[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        let names = ["threads", "vector", "narrow", "narrow_rows", "wide_rows"];
        let expected = [GPU_THREADS, GPU_VECTOR, GPU_NARROW, GPU_NARROW_ROWS, GPU_WIDE_ROWS];
        for kind in ["f32", "bf16", "f16", "q8"] {
            let file = format!("attention_{kind}");
            assert_eq!(names.map(|name| stated_constant(&file, name)), expected.map(Some), "{file}");
        }
        let found = ["threads", "chunks"].map(|name| stated_constant("attention_combine", name));
        assert_eq!(found, [GPU_THREADS, GPU_MAX_CHUNKS].map(Some));
    }
}
