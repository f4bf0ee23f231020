//! Attention by a kernel, which reads the cache where it lies, up to each token's own position and no further.

use mlxcel_models::Attention;
use safetensors::Dtype;

use super::{super::cache::LayerCache, Sequence};
use crate::{Isa, Kv, Tensor, TensorType, kernels::Executable, layers::Builder};

/// Rows, of a query and a head each, that share the keys and values that a workgroup brings into `f32`: more than the kernel
/// does at a time gains nothing.
const ROWS: usize = 152;

/// The longest rows that the kernel has room for.
pub(super) const MAX_HEAD_DIM: usize = 256;

/// Positions that one workgroup of a decode step attends to: with few heads, this is what gives every core some work.
const CHUNK: usize = 1024;

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
    let chunks = if tokens == 1 { span.div_ceil(CHUNK) } else { 1 };
    let tile = ROWS.div_ceil(heads.checked_div(kv_heads).unwrap_or(0).max(1)).min(tokens);
    let tiles = tokens.div_ceil(tile);
    let window = layer.window.unwrap_or(0);
    // As bits, for sizes are whole numbers.
    #[expect(clippy::cast_possible_truncation, reason = "the kernel computes in f32")]
    let soft_cap = layer.soft_cap.map_or(0, |cap| (cap as f32).to_bits() as usize);
    let function = |many, one| if chunks > 1 { many } else { one };
    let mut executable = Executable {
        isa,
        file: "attention",
        function: match cache.kv() {
            Kv::Q8 => function("attention_chunks_q8", "attention_q8"),
            Kv::Float(Dtype::BF16) => function("attention_chunks_bf16", "attention_bf16"),
            Kv::Float(Dtype::F16) => function("attention_chunks_f16", "attention_f16"),
            Kv::Float(_) => function("attention_chunks_f32", "attention_f32"),
        },
        operands: [vec![whole.clone()], types, vec![counts.clone(), counts]].concat(),
        cache: 1..1 + cached.len(),
        results: vec![whole.clone()],
        numbers: 1,
        sizes: vec![batch, tokens, heads, kv_heads, head_dim, capacity, tile, window, soft_cap],
        items: batch * chunks * tiles * kv_heads,
        grain: 1,
    };
    if chunks > 1 {
        executable.results = vec![
            TensorType::new(Dtype::F32, [batch, chunks, tokens, heads, head_dim]),
            TensorType::new(Dtype::F32, [batch, chunks, tokens, heads, 2]),
        ];
        executable.sizes.push(CHUNK);
    }
    let number = b.graph.host_number(cache.layer());
    let operands = [&[query], cached.as_slice(), &[sequence.start, lengths]].concat();
    let attended = b.module.call(&mut b.graph, executable, &operands, &[number]);
    if chunks == 1 {
        return attended[0];
    }
    let combine = Executable {
        isa,
        file: "attention",
        function: "attention_combine",
        operands: attended.iter().map(|&part| b.graph.type_of(part)).collect(),
        cache: 0..0,
        results: vec![whole],
        numbers: 0,
        sizes: vec![chunks, tokens * heads, head_dim],
        items: batch * tokens * heads,
        grain: batch * tokens * heads,
    };
    b.module.call(&mut b.graph, combine, &attended, &[])[0]
}
