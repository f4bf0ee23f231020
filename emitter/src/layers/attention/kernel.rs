//! Attention by a kernel, which reads the cache where it lies, up to each token's own position and no further.

use mlxcel_artifacts::{CacheType, Float};
use mlxcel_models::{Attention, Weight};
use safetensors::Dtype;

use super::{super::cache::LayerCache, Sequence};
use crate::{Graph, Isa, Reduction, Tensor, TensorType, kernels::Executable, layers::Builder};

/// Rows, of a query and a head each, that share the keys and values that a workgroup brings into `f32`: more than the kernel
/// does at a time gains nothing.
const ROWS: usize = 152;

/// The longest rows that the kernels have room for.
const MAX_HEAD_DIM: usize = 256;

/// What the rows are a multiple of that the kernels for GPUs read: `VECTOR` of `cuda/attention.h`.
const GPU_VECTOR: usize = 8;

/// Positions that one workgroup of a decode step attends to: with few heads, this is what gives every core some work.
const CHUNK: usize = 1024;

/// Threads of a workgroup on a GPU: `THREADS` of `cuda/attention.h`.
const GPU_THREADS: usize = 256;

/// Heads that a workgroup of a GPU does, of rows up to `GPU_NARROW` elements and of wider ones: as there.
const GPU_NARROW: usize = 128;
const GPU_NARROW_ROWS: usize = 4;
const GPU_WIDE_ROWS: usize = 2;

/// Workgroups that give every part of a large GPU some work.
const GPU_WORKGROUPS: usize = 256;

/// More parts than this take longer to merge than they gain: `MOST_CHUNKS` of `cuda/attention_combine.c`.
const GPU_PARTS: usize = 32;

/// The instruction set of the kernel that attends to `tokens` tokens; none where StableHLO does. On GPUs kernels are for
/// single tokens, generated code does more.
pub(super) fn isa(b: &Builder<'_>, layer: &Attention, tokens: usize) -> Option<Isa> {
    let fits = |isa: &Isa| {
        layer.head_dim <= MAX_HEAD_DIM
            && (!isa.is_gpu() || tokens == 1 && layer.causal && layer.head_dim.is_multiple_of(GPU_VECTOR))
    };
    b.numerics.steps_by().filter(fits)
}

/// How the work of a call is divided among workgroups.
struct Division {
    /// What a workgroup does of one kv head: tokens on a CPU, heads of the group on a GPU. And how many such there are.
    tile: usize,
    tiles: usize,
    /// Into how many parts the positions are divided.
    chunks: usize,
    /// What the kernel is told of them: positions of each on a CPU, how many there are on a GPU.
    chunk: usize,
    /// Items of a workgroup on a CPU, its threads on a GPU.
    grain: usize,
}

impl Division {
    /// `tokens` attend to `span` of the cache's positions, with `group` heads of each kv head.
    fn on_cpu([tokens, group]: [usize; 2], [span, capacity]: [usize; 2]) -> Self {
        let tile = ROWS.div_ceil(group).min(tokens);
        let chunks = if tokens == 1 { span.div_ceil(CHUNK) } else { 1 };
        let chunk = if chunks > 1 { CHUNK } else { capacity };
        Self { tile, tiles: tokens.div_ceil(tile), chunks, chunk, grain: 1 }
    }

    /// A token attends with `group` heads of each of `kv_heads`, all rows' together.
    fn on_gpu([kv_heads, group]: [usize; 2], head_dim: usize) -> Self {
        let tile = if head_dim <= GPU_NARROW { GPU_NARROW_ROWS } else { GPU_WIDE_ROWS };
        let tiles = group.div_ceil(tile);
        let chunks = GPU_WORKGROUPS.div_ceil(tiles * kv_heads).min(GPU_PARTS);
        Self { tile, tiles, chunks, chunk: chunks, grain: GPU_THREADS }
    }
}

/// Softmax attention of `query`, `[batch, tokens, heads, head_dim]`, scaled, to a layer's cache; `f32`, as `query`.
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
    let cached = cache.all();
    let types: Vec<_> = cached.iter().map(|&part| b.graph.type_of(part)).collect();
    let Some(&[_, _, kv_heads, capacity, _]) = types.first().map(|ty| ty.shape.as_slice()) else {
        return query;
    };
    let lengths = b.lengths(batch, tokens);
    let counts = TensorType::new(Dtype::I32, [batch]);
    let whole = TensorType::new(Dtype::F32, [batch, tokens, heads, head_dim]);
    let span = layer.window.map_or(capacity, |window| capacity.min(window + tokens));
    let group = heads.checked_div(kv_heads).unwrap_or(0).max(1);
    let Division { tile, tiles, chunks, chunk, grain } = if isa.is_gpu() {
        Division::on_gpu([batch * kv_heads, group], head_dim)
    } else {
        Division::on_cpu([tokens, group], [span, capacity])
    };
    let window = layer.window.unwrap_or(0);
    // As bits, for sizes are whole numbers.
    #[expect(clippy::cast_possible_truncation, reason = "the kernel computes in f32")]
    let soft_cap = layer.soft_cap.map_or(0, |cap| (cap as f32).to_bits() as usize);
    let by_chunks = isa.is_gpu() || chunks > 1 || layer.sinks.is_some();
    let (on_gpu, many, one) = match cache.kv() {
        CacheType::Q8 => (("attention_q8", "cuda_attention_q8"), "attention_chunks_q8", "attention_q8"),
        CacheType::Float(Float::Bf16) => {
            (("attention_bf16", "cuda_attention_bf16"), "attention_chunks_bf16", "attention_bf16")
        }
        CacheType::Float(Float::F16) => {
            (("attention_f16", "cuda_attention_f16"), "attention_chunks_f16", "attention_f16")
        }
        CacheType::Float(Float::F32) => {
            (("attention_f32", "cuda_attention_f32"), "attention_chunks_f32", "attention_f32")
        }
    };
    let (file, function) = match (isa.is_gpu(), by_chunks) {
        (true, _) => on_gpu,
        (false, true) => ("attention", many),
        (false, false) => ("attention", one),
    };
    let mut executable = Executable {
        isa,
        file,
        function,
        operands: [vec![whole.clone()], types, vec![counts.clone(), counts]].concat(),
        cache: 1..1 + cached.len(),
        results: vec![whole.clone()],
        numbers: 1,
        sizes: vec![
            batch,
            tokens,
            heads,
            kv_heads,
            head_dim,
            capacity,
            tile,
            window,
            soft_cap,
            usize::from(layer.causal),
        ],
        items: batch * chunks * tiles * kv_heads,
        grain,
    };
    if by_chunks {
        executable.results = vec![
            TensorType::new(Dtype::F32, [batch, chunks, tokens, heads, head_dim]),
            TensorType::new(Dtype::F32, [batch, chunks, tokens, heads, 2]),
        ];
        executable.sizes.push(chunk);
    }
    let number = b.graph.host_number(cache.layer());
    let operands = [&[query], cached.as_slice(), &[sequence.start, lengths]].concat();
    let attended = b.module.call(&mut b.graph, executable, &operands, &[number]);
    if let Some(sinks) = &layer.sinks {
        return combine_with_sinks(b, sinks, [attended[0], attended[1]]);
    }
    if !by_chunks {
        return attended[0];
    }
    let (file, function, grain) = if isa.is_gpu() {
        ("attention_combine", "cuda_attention_combine", GPU_THREADS)
    } else {
        ("attention", "attention_combine", batch * tokens * heads)
    };
    let combine = Executable {
        isa,
        file,
        function,
        operands: attended.iter().map(|&part| b.graph.type_of(part)).collect(),
        cache: 0..0,
        results: vec![whole],
        numbers: 0,
        sizes: vec![chunks, tokens * heads, head_dim],
        items: batch * tokens * heads,
        grain,
    };
    b.module.call(&mut b.graph, combine, &attended, &[])[0]
}

/// What `attention_combine` makes of chunks, with a score of each head that has no value: sums `[batch, chunks, tokens,
/// heads, head_dim]`, and maxima, in units of log 2, and sums of weights, `[batch, chunks, tokens, heads, 2]`.
fn combine_with_sinks(b: &mut Builder<'_>, sinks: &Weight, [sums, max_sum]: [Tensor; 2]) -> Tensor {
    let sinks = b.weight_f32(sinks);
    let g = &mut b.graph;
    let shape = g.shape(sums).to_vec();
    let &[batch, chunks, tokens, heads, _] = shape.as_slice() else {
        return sums;
    };
    let of_chunks = [batch, chunks, tokens, heads];
    let [max, weights] = [0, 1].map(|index| {
        let part = g.slice_dimension(max_sum, 4, index, index + 1);
        g.reshape(part, &of_chunks)
    });
    let rows = [batch, tokens, heads];
    let sinks = g.scale(sinks, std::f64::consts::LOG2_E);
    let sinks = g.broadcast_in_dim(sinks, &rows, &[2]);
    let largest = g.reduce(max, Reduction::Max, &[1]);
    let largest = g.maximum(largest, sinks);
    let power = |g: &mut Graph, x: Tensor, base: Tensor| {
        let shifted = g.subtract(x, base);
        let scaled = g.scale(shifted, std::f64::consts::LN_2);
        g.exponential(scaled)
    };
    let base = g.broadcast_in_dim(largest, &of_chunks, &[0, 2, 3]);
    let factors = power(g, max, base);
    let weights = g.multiply(weights, factors);
    let sum = g.reduce(weights, Reduction::Sum, &[1]);
    let of_sinks = power(g, sinks, largest);
    let sum = g.add(sum, of_sinks);
    // Sums of a chunk that weighs nothing were not written.
    let zero = g.full(0.0, Dtype::F32, &shape);
    let spread = g.broadcast_in_dim(factors, &shape, &[0, 1, 2, 3]);
    let counts = g.gt(spread, zero);
    let weighted = g.multiply(sums, spread);
    let weighted = g.select(counts, weighted, zero);
    let total = g.reduce(weighted, Reduction::Sum, &[1]);
    let whole = g.shape(total).to_vec();
    let sum = g.broadcast_in_dim(sum, &whole, &[0, 1, 2]);
    g.divide(total, sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::cuda::stated;

    #[test]
    fn what_kernels_state_is_what_is_given_to_them() {
        let names = ["threads", "vector", "narrow", "narrow_rows", "wide_rows"];
        let expected = [GPU_THREADS, GPU_VECTOR, GPU_NARROW, GPU_NARROW_ROWS, GPU_WIDE_ROWS];
        for kind in ["f32", "bf16", "f16", "q8"] {
            let file = format!("attention_{kind}");
            assert_eq!(names.map(|name| stated(&file, name)), expected.map(Some), "{file}");
        }
        let found = ["threads", "chunks"].map(|name| stated("attention_combine", name));
        assert_eq!(found, [GPU_THREADS, GPU_PARTS].map(Some));
    }
}
