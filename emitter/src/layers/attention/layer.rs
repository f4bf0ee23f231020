//! The attention layer of a block.

use mlxcel_models::{Attention, Norm};

use super::{kernel, online, sequence::Sequence};
use crate::{
    graph::Tensor,
    layers::{
        builder::Builder,
        cache::{KeyOrValue, LayerCache},
        linear::{linear, linears},
        norm::{norm, norm_heads},
        rope::{self, Rotation},
    },
};

/// Writes the tokens' keys and values to the cache and attends to it: `[batch, tokens, hidden]` to the same shape.
pub(crate) fn attention(
    b: &mut Builder<'_>,
    layer: &Attention,
    cache: &mut LayerCache<'_>,
    rotation: Option<Rotation>,
    sequence: Sequence,
    x: Tensor,
) -> Tensor {
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (operand, isa) = (b.operand_dtype(), kernel::isa(b, layer, tokens));
    let (kv_heads, head_dim) = (layer.kv_heads, layer.head_dim);
    let group = layer.heads.checked_div(kv_heads).unwrap_or(0);
    let projections = [("q_proj", &layer.query), ("k_proj", &layer.key), ("v_proj", &layer.value)];
    let [query, key, value] = linears(b, projections, x);
    let query = b.scope("q_norm", |b| split_heads(b, layer.query_norm.as_ref(), layer.heads, query));
    let key = b.scope("k_norm", |b| split_heads(b, layer.key_norm.as_ref(), kv_heads, key));
    let value = split_heads(b, None, kv_heads, value);
    let g = &mut b.graph;
    let [query, key, value] = [query, key, value].map(|x| layer.clip.map_or(x, |limit| g.clip(x, limit)));
    let [query, key] = [query, key].map(|x| rotation.map_or(x, |rotation| rope::rotate(g, rotation, x)));
    cache.append(g, KeyOrValue::Key, sequence.start, key);
    cache.append(g, KeyOrValue::Value, sequence.start, value);

    let query = g.scale(query, layer.scale);
    let attended = match isa {
        Some(isa) => kernel::attend(b, isa, layer, query, cache, sequence),
        None => {
            let query = g.reshape(query, &[batch, tokens, kv_heads, group, head_dim]);
            let query = g.transpose(query, &[0, 2, 3, 1, 4]);
            let query = g.convert(query, operand);
            let attended = online::attend(b, layer, query, cache, sequence);
            b.graph.transpose(attended, &[0, 3, 1, 2, 4])
        }
    };
    let attended = b.graph.reshape(attended, &[batch, tokens, layer.heads * head_dim]);
    linear(b, ("o_proj", &layer.output), attended)
}

/// Splits `x`, `[batch, tokens, heads · head_dim]`, into heads and applies their norm.
fn split_heads(b: &mut Builder<'_>, layer: Option<&Norm>, count: usize, x: Tensor) -> Tensor {
    let &[batch, tokens, width] = b.graph.shape(x) else {
        return x;
    };
    let split = [batch, tokens, count, width.checked_div(count).unwrap_or(0)];
    match layer {
        None => b.graph.reshape(x, &split),
        Some(layer) if layer.shape() == [width] => {
            let normed = norm(b, layer, x);
            b.graph.reshape(normed, &split)
        }
        Some(layer) => norm_heads(b, layer, x, count),
    }
}
