//! Attention by kernels on GPUs, which write and read pages of the cache in place.
//!
//! One kernel does all for the rows of a decode step. Prompts need one that appends keys and values, and one that attends.

use mlxcel_artifacts::{CacheType, Float};
use mlxcel_models::{Attention, Norm, Pairs};
use safetensors::Dtype;

use super::kernel::key_values;
use crate::{
    graph::{HostIndex, Tensor},
    kernels::{
        CudaAppend, CudaDecodeAttention, CudaHeadNorm, CudaNormHeads, CudaPrefillAttention, CudaRope,
        F32Bits, Grid, Isa, Overwritten, OverwrittenWithCounters, element_number, norm_number,
    },
    layers::{
        builder::Builder,
        cache::{LayerCache, Staged},
        linear::vector,
        rope::Rotation,
    },
    types::TensorType,
};

/// Threads of a workgroup of a decode step, and its heads: `THREADS` and `ROWS` of `cuda/attention_merge.h`.
const THREADS: usize = 128;
const ROWS: usize = 4;

/// The multiprocessors of a large GPU, and the workgroups that each runs at a time.
const MULTIPROCESSORS: usize = 132;
const RESIDENT: usize = 3;

/// The most chunks: `MAX_CHUNKS` of `cuda/attention.h`.
const MAX_CHUNKS: usize = 128;

/// Threads of a workgroup that normalizes heads of several rows, and those heads: as in `cuda/norm_heads.c`.
const NORM_THREADS: usize = 256;
const NORM_HEADS: usize = 8;

/// Threads of a workgroup that appends, and the dimensions of each: as in `cuda/append.h`.
const APPEND_THREADS: usize = 256;
const APPEND_DIMS: usize = 4;

/// Threads of a workgroup of a prompt, and queries of all heads of a kv head: as in `cuda/prefill_attention.h`, and for caches
/// in `f32` as in `cuda/prefill_attention_f32.c`, with fewer for heads of more than 128 dimensions.
const PREFILL: [usize; 2] = [256, 64];
const PREFILL_F32: [usize; 2] = [128, 32];
const PREFILL_F32_WIDE: [usize; 2] = [128, 16];

/// Returns the most counters that a layer's decode step of one sequence takes.
pub(crate) fn counters(layer: &Attention) -> usize {
    layer.kv_heads * tiles(layer)
}

/// Returns how many workgroups share the heads of a kv head.
fn tiles(layer: &Attention) -> usize {
    layer.heads.checked_div(layer.kv_heads).unwrap_or(0).max(1).div_ceil(ROWS)
}

/// What the kernels of a layer have in common.
struct Call<'l> {
    isa: Isa,
    layer: &'l Attention,
    staged: Staged,
    pages: Tensor,
    cos: Tensor,
    sin: Tensor,
    rope: CudaRope,
    sinks: Tensor,
    sequences: usize,
    /// Rows of a sequence.
    tokens: usize,
    /// Pages of a sequence in the table.
    table: usize,
    parts: usize,
    number: HostIndex,
}

/// Normalizes and rotates heads, appends keys and values to the cache, and attends to it: `[sequences, rows, heads · head_dim]`
/// to `[sequences, rows, heads, head_dim]`.
pub(super) fn append_and_attend(
    b: &mut Builder<'_>,
    layer: &Attention,
    projected: [Tensor; 3],
    rotation: Option<Rotation>,
    cache: &mut LayerCache<'_>,
) -> Tensor {
    let projected = normed_heads(b, layer, projected);
    let query = projected[0];
    let table = cache.table();
    let (&[sequences, tokens, _], &[_, pages]) = (b.graph.shape(query), b.graph.shape(table.pages)) else {
        return query;
    };
    let (Some(isa), Some(staged)) = (b.numerics.gpu, cache.staged()) else { return query };
    let [cos, sin] = rotation.map_or([query; 2], |rotation| [rotation.cos, rotation.sin]);
    let pairs = rotation.and_then(|rotation| b.graph.shape(rotation.cos).last().copied()).unwrap_or(0);
    let interleaved = rotation.is_some_and(|rotation| rotation.pairs == Pairs::Interleaved);
    let sinks = layer.sinks.as_ref().map(|sinks| b.weight_f32(sinks));
    let call = Call {
        isa,
        layer,
        staged,
        pages: table.pages,
        cos,
        sin,
        rope: CudaRope { pairs, interleaved },
        sinks: sinks.unwrap_or(query),
        sequences,
        tokens,
        table: pages,
        parts: cache.parts(&b.graph),
        number: HostIndex(b.graph.host_constant(cache.index())),
    };
    if tokens == 1 { call.decode(b, projected, cache) } else { call.prefill(b, projected, cache) }
}

impl Call<'_> {
    fn out(&self, ty: Dtype) -> TensorType {
        TensorType::new(ty, [self.sequences, self.tokens, self.layer.heads, self.layer.head_dim])
    }

    fn window(&self) -> usize {
        self.layer.window.unwrap_or(0)
    }

    fn soft_cap(&self) -> F32Bits {
        F32Bits(self.layer.soft_cap.unwrap_or(0.0))
    }

    fn has_first_pages(&self, cache: &LayerCache<'_>) -> bool {
        cache.table().first_pages.is_some()
    }

    /// Attends with one row of each sequence.
    fn decode(self, b: &mut Builder<'_>, [q, k, v]: [Tensor; 3], cache: &mut LayerCache<'_>) -> Tensor {
        let layer = self.layer;
        let (&Attention { heads, kv_heads, head_dim, .. }, sequences) = (layer, self.sequences);
        let workgroups = (tiles(layer) * sequences * kv_heads).max(1);
        let busy = (MULTIPROCESSORS / workgroups).max(1);
        let chunks = (RESIDENT * MULTIPROCESSORS / workgroups).clamp(1, MAX_CHUNKS);
        let (head_norm, [q_norm, k_norm]) = head_norms(b, layer, q);
        // The product after several rows multiplies halves.
        let ty = if sequences == 1 { Dtype::F32 } else { b.operand_dtype() };
        let attention = CudaDecodeAttention {
            q,
            k,
            v,
            cos: self.cos,
            sin: self.sin,
            q_norm,
            k_norm,
            cache: OverwrittenWithCounters { cache: key_values(cache), counters: self.staged.counters },
            row_numbers: self.staged.row_numbers,
            pages: self.pages,
            sinks: self.sinks,
            out: self.out(ty),
            // Sums, then the largest score and the sum of weights.
            partial: TensorType::new(Dtype::F32, [sequences * chunks * heads * (head_dim + 2)]),
            layer: self.number,
            sequences,
            heads,
            kv_heads,
            head_dim,
            parts: self.parts,
            table: self.table,
            chunks,
            busy,
            window: self.window(),
            soft_cap: self.soft_cap(),
            has_first_pages: self.has_first_pages(cache),
            has_sinks: layer.sinks.is_some(),
            rope: self.rope.clone(),
            head_norm,
            clip: F32Bits(layer.clip.unwrap_or(0.0)),
            scale: F32Bits(layer.scale),
            out_type: element_number(ty),
        };
        let grid = Grid { items: workgroups * chunks, grain: THREADS };
        let made = b.module.call(&mut b.graph, self.isa, attention, grid);
        // The results, then the cache and the counters.
        let &[out, _, ref cache_parts @ .., counters] = made.as_slice() else { return q };
        cache.replace(cache_parts);
        cache.replace_counters(counters);
        let flat = b.graph.reshape(out, &[sequences, heads * head_dim]);
        b.widened(flat, &[sequences, 1, heads * head_dim])
    }

    /// Attends with several rows of each sequence.
    fn prefill(self, b: &mut Builder<'_>, [q, k, v]: [Tensor; 3], cache: &mut LayerCache<'_>) -> Tensor {
        let layer = self.layer;
        let (&Attention { heads, kv_heads, head_dim, .. }, sequences) = (layer, self.sequences);
        let rows = sequences * self.tokens;
        let append = CudaAppend {
            k,
            v,
            cos: self.cos,
            sin: self.sin,
            cache: Overwritten(key_values(cache)),
            row_numbers: self.staged.row_numbers,
            layer: self.number,
            rows,
            kv_heads,
            head_dim,
            rope: self.rope.clone(),
            parts: self.parts,
        };
        let threads = rows * 2 * kv_heads * (head_dim / APPEND_DIMS);
        let grid = Grid { items: threads.div_ceil(APPEND_THREADS), grain: APPEND_THREADS };
        let written = b.module.call(&mut b.graph, self.isa, append, grid);
        cache.replace(&written);
        // The product after it multiplies halves.
        let ty = b.operand_dtype();
        let attention = CudaPrefillAttention {
            q,
            cos: self.cos,
            sin: self.sin,
            cache: key_values(cache),
            row_numbers: self.staged.row_numbers,
            pages: self.pages,
            sinks: self.sinks,
            out: self.out(ty),
            layer: self.number,
            sequences,
            rows: self.tokens,
            heads,
            kv_heads,
            head_dim,
            rope: self.rope.clone(),
            parts: self.parts,
            table: self.table,
            window: self.window(),
            scale: F32Bits(layer.scale),
            soft_cap: self.soft_cap(),
            has_first_pages: self.has_first_pages(cache),
            has_sinks: layer.sinks.is_some(),
            out_type: element_number(ty),
        };
        let [threads, queries] = match cache.cache_type() {
            CacheType::Float(Float::F32) if head_dim > 128 => PREFILL_F32_WIDE,
            CacheType::Float(Float::F32) => PREFILL_F32,
            _ => PREFILL,
        };
        let tiles = (self.tokens * (heads / kv_heads.max(1))).div_ceil(queries);
        let grid = Grid { items: sequences * kv_heads * tiles, grain: threads };
        let made = b.module.call(&mut b.graph, self.isa, attention, grid)[0];
        let flat = b.graph.reshape(made, &[rows, heads * head_dim]);
        b.widened(flat, &[sequences, self.tokens, heads * head_dim])
    }
}

/// Normalizes the heads of queries and keys of several rows of a sequence. Decode steps do so with their attention.
fn normed_heads(b: &mut Builder<'_>, layer: &Attention, [q, k, v]: [Tensor; 3]) -> [Tensor; 3] {
    let (&[sequences, tokens, width], &[_, _, kv_width]) = (b.graph.shape(q), b.graph.shape(k)) else {
        return [q, k, v];
    };
    let (Some(isa), true) = (b.numerics.gpu, tokens > 1 && norms_heads(b, layer, tokens)) else {
        return [q, k, v];
    };
    let (head_norm, [q_norm, k_norm]) = head_norms(b, layer, q);
    let rows = sequences * tokens;
    let &Attention { heads, kv_heads, head_dim, .. } = layer;
    let [q_out, k_out] = [width, kv_width].map(|width| TensorType::new(Dtype::F32, [rows, width]));
    let call =
        CudaNormHeads { q, k, q_norm, k_norm, q_out, k_out, rows, heads, kv_heads, head_dim, head_norm };
    let grid = Grid { items: (rows * (heads + kv_heads)).div_ceil(NORM_HEADS), grain: NORM_THREADS };
    let made = b.module.call(&mut b.graph, isa, call, grid);
    let &[q_out, k_out] = made.as_slice() else { return [q, k, v] };
    [
        b.graph.reshape(q_out, &[sequences, tokens, width]),
        b.graph.reshape(k_out, &[sequences, tokens, kv_width]),
        v,
    ]
}

/// Returns whether kernels normalize the heads of queries and keys of so many rows of a sequence. Those for several do not clip.
pub(super) fn norms_heads(b: &Builder<'_>, layer: &Attention, tokens: usize) -> bool {
    takes_head_norms(b, layer) && (tokens == 1 || layer.clip.is_none())
}

/// Returns whether kernels know the norms of heads.
fn takes_head_norms(b: &Builder<'_>, layer: &Attention) -> bool {
    let (Some(query), Some(key)) = (&layer.query_norm, &layer.key_norm) else { return false };
    let fits = |norm: &Norm, heads: usize| {
        let shape = norm.shape();
        let is_of_heads = shape == [layer.head_dim] || shape == [heads, layer.head_dim];
        norm.weights.len() == 1 && norm.bias.is_none() && is_of_heads
    };
    let alike = query.kind == key.kind
        && query.epsilon == key.epsilon
        && query.offset == key.offset
        && query.shape().len() == key.shape().len()
        && b.dtype(&query.weights[0]) == b.dtype(&key.weights[0]);
    fits(query, layer.heads) && fits(key, layer.kv_heads) && alike
}

/// Returns the norm of heads that the kernel computes, and its weights; without one, `none` in their place.
fn head_norms(b: &mut Builder<'_>, layer: &Attention, none: Tensor) -> (CudaHeadNorm, [Tensor; 2]) {
    let (Some(query), Some(key)) = (&layer.query_norm, &layer.key_norm) else {
        return (no_head_norm(), [none; 2]);
    };
    if !takes_head_norms(b, layer) {
        return (no_head_norm(), [none; 2]);
    }
    let [(query_weight, norm_type), (key_weight, _)] = [query, key].map(|norm| vector(b, &norm.weights[0]));
    let norm = CudaHeadNorm {
        norm: norm_number(query.kind),
        norm_type,
        norm_by_head: query.shape().len() > 1,
        epsilon: F32Bits(query.epsilon),
        offset: F32Bits(query.offset),
    };
    (norm, [query_weight, key_weight])
}

fn no_head_norm() -> CudaHeadNorm {
    CudaHeadNorm { norm: 0, norm_type: 0, norm_by_head: false, epsilon: F32Bits(0.0), offset: F32Bits(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kernels::stated_constant, plan::MAX_SEQUENCES};

    #[test]
    fn constants_are_those_of_the_kernels() {
        let stated = |function: String, names: &[&str]| -> Vec<_> {
            names.iter().map(|name| stated_constant(&function, name)).collect()
        };
        for ty in ["f32", "bf16", "f16", "q8"] {
            let found = stated(
                format!("cuda_decode_attention_{ty}_64"),
                &["threads", "rows", "max_chunks", "most_live"],
            );
            assert_eq!(found, [THREADS, ROWS, MAX_CHUNKS, MAX_SEQUENCES].map(Some), "{ty}");
            let found = stated(format!("cuda_append_{ty}"), &["append_threads", "append_dims"]);
            assert_eq!(found, [APPEND_THREADS, APPEND_DIMS].map(Some), "{ty}");
        }
        let found = stated("cuda_norm_heads".into(), &["threads", "heads"]);
        assert_eq!(found, [NORM_THREADS, NORM_HEADS].map(Some));
        let found = stated("cuda_prefill_attention_q8_64".into(), &["prefill_threads", "queries"]);
        assert_eq!(found, PREFILL.map(Some));
        let float = "cuda_prefill_attention_f32_64";
        assert_eq!(stated(float.into(), &["float_threads", "float_queries"]), PREFILL_F32.map(Some));
        assert_eq!(stated(float.into(), &["float_queries_wide"]), [Some(PREFILL_F32_WIDE[1])]);
    }
}
