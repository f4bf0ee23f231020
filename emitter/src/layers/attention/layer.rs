//! The attention layer of a block.

use mlxcel_models::{Attention, Norm};
use safetensors::Dtype;

use super::{
    gpu, kernel, online,
    sequence::{Division, Rows},
};
use crate::{
    graph::{Graph, Tensor},
    layers::{
        builder::Builder,
        cache::{KeyOrValue, LayerCache},
        linear::{linear, linears},
        norm::{norm, norm_heads, norm_rows},
        rope::{self, Rotation},
    },
};

/// Writes the rows' keys and values to the cache and attends to it: `[batch, tokens, hidden]` to the same shape.
pub(crate) fn attention(
    b: &mut Builder<'_>,
    layer: &Attention,
    cache: &mut LayerCache<'_>,
    rotation: Option<Rotation>,
    rows: &Rows,
    x: Tensor,
) -> Tensor {
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let kv_heads = layer.kv_heads;
    let projections = [("q_proj", &layer.query), ("k_proj", &layer.key), ("v_proj", &layer.value)];
    let [query, key, value] = linears(b, projections, x);
    // Kernels for one row of a sequence normalize and clip heads themselves, and those for several normalize them.
    let in_place = matches!(rows.division, Division::InPlace);
    let clips = in_place && tokens == 1;
    let norms_heads = in_place && gpu::norms_heads(b, layer, tokens);
    let query_norm = layer.query_norm.as_ref().filter(|_| !norms_heads);
    let key_norm = layer.key_norm.as_ref().filter(|_| !norms_heads);
    let query = b.scope("q_norm", |b| normed_heads(b, query_norm, layer.heads, query));
    let key = b.scope("k_norm", |b| normed_heads(b, key_norm, kv_heads, key));
    let clip = layer.clip.filter(|_| !clips);
    let g = &mut b.graph;
    let projected = [query, key, value].map(|x| clip.map_or(x, |limit| g.clip(x, limit)));
    let attended = match (kernel::isa(b, layer, rows), rows.division) {
        (Some(isa), _) => kernel::append_and_attend(b, isa, layer, projected, rotation, (cache, rows)),
        (None, Division::InPlace) => gpu::append_and_attend(b, layer, projected, rotation, cache),
        (None, _) => generated(b, layer, projected, rotation, cache, rows),
    };
    let attended = b.graph.reshape(attended, &[batch, tokens, layer.heads * layer.head_dim]);
    linear(b, ("o_proj", &layer.output), attended)
}

/// Rotates, caches and attends as generated code: `[batch, tokens, heads · head_dim]` to `[batch, tokens, heads, head_dim]`.
fn generated(
    b: &mut Builder<'_>,
    layer: &Attention,
    [query, key, value]: [Tensor; 3],
    rotation: Option<Rotation>,
    cache: &mut LayerCache<'_>,
    rows: &Rows,
) -> Tensor {
    let &[batch, tokens, _] = b.graph.shape(query) else {
        return query;
    };
    let (operand, kv_heads, head_dim) = (b.operand_dtype(), layer.kv_heads, layer.head_dim);
    let group = layer.heads.checked_div(kv_heads).unwrap_or(0);
    let g = &mut b.graph;
    let split = |g: &mut Graph, x, heads| g.reshape(x, &[batch, tokens, heads, head_dim]);
    let (query, key) = (split(g, query, layer.heads), split(g, key, kv_heads));
    let value = split(g, value, kv_heads);
    let [query, key] = [query, key].map(|x| rotation.map_or(x, |rotation| rope::rotate(g, rotation, x)));
    let by_kv_head = |g: &mut Graph| {
        let query = g.scale(query, layer.scale);
        let query = g.reshape(query, &[batch, tokens, kv_heads, group, head_dim]);
        let query = g.transpose(query, &[0, 2, 3, 1, 4]);
        g.convert(query, operand)
    };
    let attended = match rows.division {
        Division::Uniform { end: Some(end) } => {
            cache.append(g, KeyOrValue::Key, key);
            cache.append(g, KeyOrValue::Value, value);
            let query = by_kv_head(&mut b.graph);
            online::attend_to_pages(b, layer, query, cache, rows.positions, end)
        }
        Division::Uniform { end: None } => {
            let query = by_kv_head(g);
            let by_head = [key, value].map(|x| g.transpose(x, &[0, 2, 1, 3]));
            online::attend_to_text(b, layer, query, by_head, rows.positions)
        }
        Division::Ragged { .. } | Division::InPlace => {
            b.graph.fail("attention", "found sequences of any length, expected kernels or a uniform call")
        }
    };
    b.graph.transpose(attended, &[0, 3, 1, 2, 4])
}

/// Applies the norm of heads to `x`, `[batch, tokens, heads · head_dim]`.
fn normed_heads(b: &mut Builder<'_>, layer: Option<&Norm>, heads: usize, x: Tensor) -> Tensor {
    let (shape, Some(layer)) = (b.graph.shape(x).to_vec(), layer) else { return x };
    if shape.last().is_some_and(|&width| layer.shape() == [width]) {
        // No product follows that would compute the norm.
        let by_kernel = norm_rows(b, x, None, Some((layer, Dtype::F32)));
        return by_kernel.map_or_else(|| norm(b, layer, x), |[_, normed]| normed);
    }
    let normed = norm_heads(b, layer, x, heads);
    b.graph.reshape(normed, &shape)
}
