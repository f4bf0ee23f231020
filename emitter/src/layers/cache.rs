//! The key/value cache.
//!
//! Layers with the same number of slots share one mutable global, which holds their keys and values. Two globals of one
//! shape would not do: iree-compile 3.13 merges globals that are always stored alike. A quantized cache has a second global
//! for its scales.
//!
//! A layer with a window has a ring buffer: position `p` is in slot `p % slots`. It has room for the window and one call.

use mlxcel_artifacts::{CacheType, Float};
use mlxcel_models::{Attention, ModelConfig};
use safetensors::Dtype;

use super::{builder::Builder, quantization};
use crate::{
    global::Global,
    graph::{Graph, Tensor},
    plan::Plan,
    types::TensorType,
};

/// The cache inside a function.
pub(crate) struct Cache {
    groups: Vec<Group>,
    /// The group of each layer, and the layer's index in it.
    places: Vec<(usize, usize)>,
}

/// Layers with the same number of slots: `[2 · layers, batch, kv_heads, slots, head_dim]`, each layer's keys before its
/// values. All positions of a head are contiguous.
struct Group {
    /// The cached floats. For [`CacheType::Q8`] the bytes, then their scales, `[…, head_dim / 32]`.
    parts: Vec<Part>,
    cache_type: CacheType,
    /// The number of positions that fit.
    slots: usize,
    /// Whether new positions overwrite the oldest ones.
    is_ring: bool,
}

/// A tensor of the cache with its value so far.
struct Part {
    /// The global that keeps the value for the next call. A transient cache has none.
    global: Option<Global>,
    value: Tensor,
}

/// One layer's part of the cache.
pub(crate) struct LayerCache<'a> {
    cache: &'a mut Group,
    layer: usize,
}

/// Selects the keys or the values of a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyOrValue {
    Key,
    Value,
}

impl KeyOrValue {
    pub(crate) const BOTH: [Self; 2] = [Self::Key, Self::Value];
}

impl Cache {
    /// Loads the cache of `model` from its globals. All layers have the heads of `attention`.
    pub(crate) fn load(b: &mut Builder<'_>, model: &ModelConfig, attention: &Attention, plan: &Plan) -> Self {
        let cache_type = b.cache_type;
        let layers = model.blocks.iter().map(|block| plan.cache_slots(block.attention.layer.window));
        let layers: Vec<_> = layers.collect();
        let mut sizes = layers.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let group_of = |slots| sizes.iter().position(|&size| size == slots).unwrap_or(0);
        let mut counts = vec![0; sizes.len()];
        let mut places = Vec::new();
        for slots in layers {
            let group = group_of(slots);
            places.push((group, counts[group]));
            counts[group] += 1;
        }
        let width = attention.head_dim;
        let mut groups = Vec::new();
        for (&slots, &count) in sizes.iter().zip(&counts) {
            let is_ring = slots < plan.capacity();
            let name = if is_ring { format!("cache_of_{slots}") } else { "cache".to_owned() };
            let mut part = |name: &str, dtype, width| {
                let shape = [2 * count, plan.batch, attention.kv_heads, slots, width];
                let global = b.module.state(name, TensorType::new(dtype, shape));
                let value = b.graph.load(&global);
                Part { global: Some(global), value }
            };
            let parts = match cache_type {
                CacheType::Float(float) => vec![part(&name, float.dtype(), width)],
                CacheType::Q8 => {
                    let scales = format!("{name}_scales");
                    vec![
                        part(&name, Dtype::I8, width),
                        part(&scales, Dtype::F16, width / CacheType::Q8_GROUP_SIZE),
                    ]
                }
            };
            groups.push(Group { parts, cache_type, slots, is_ring });
        }
        Self { groups, places }
    }

    /// Makes a cache for one call of `tokens` tokens, in `f32`. All layers share it, each overwriting the one before.
    pub(crate) fn transient(
        b: &mut Builder<'_>,
        model: &ModelConfig,
        attention: &Attention,
        batch: usize,
        tokens: usize,
    ) -> Self {
        let (float, shape) = (Float::F32, [2, batch, attention.kv_heads, tokens, attention.head_dim]);
        let part = Part { global: None, value: b.graph.full(0.0, float.dtype(), &shape) };
        let cache_type = CacheType::Float(float);
        let group = Group { parts: vec![part], cache_type, slots: tokens, is_ring: false };
        Self { groups: vec![group], places: vec![(0, 0); model.blocks.len()] }
    }

    /// Returns one layer's part.
    pub(crate) fn layer(&mut self, layer: usize) -> Option<LayerCache<'_>> {
        let &(group, layer) = self.places.get(layer)?;
        Some(LayerCache { cache: self.groups.get_mut(group)?, layer })
    }

    /// Stores what was appended in the globals.
    pub(crate) fn store(self, g: &mut Graph) {
        let parts = self.groups.iter().flat_map(|group| &group.parts);
        for Part { global, value } in parts {
            if let Some(global) = global {
                g.store(global, *value);
            }
        }
    }
}

impl LayerCache<'_> {
    /// Writes `new`, `[batch, tokens, kv_heads, head_dim]`, at each row's positions from `start`, `[batch]`.
    pub(crate) fn append(&mut self, g: &mut Graph, which: KeyOrValue, start: Tensor, new: Tensor) {
        let new = match self.cache.cache_type {
            CacheType::Float(float) => vec![g.convert(new, float.dtype())],
            CacheType::Q8 => quantization::quantize_q8_groups(g, new).to_vec(),
        };
        for (index, new) in new.into_iter().enumerate() {
            self.append_part(g, index, which, start, new);
        }
    }

    fn append_part(&mut self, g: &mut Graph, index: usize, which: KeyOrValue, start: Tensor, new: Tensor) {
        let &[batch, tokens, kv_heads, width] = g.shape(new) else {
            return;
        };
        for row in 0..batch {
            let rows = g.slice_dimension(new, 0, row, row + 1);
            let rows = g.transpose(rows, &[0, 2, 1, 3]);
            let rows = g.reshape(rows, &[1, 1, kv_heads, tokens, width]);
            let at = g.slice(start, &[row], &[row + 1]);
            let at = g.reshape(at, &[]);
            if self.cache.is_ring {
                self.append_wrapping(g, index, which, row, at, rows);
                continue;
            }
            let starts = self.starts(g, which, row, at);
            if let Some(part) = self.cache.parts.get_mut(index) {
                part.value = g.dynamic_update_slice(part.value, rows, &starts);
            }
        }
    }

    /// Writes `rows`, `[1, 1, kv_heads, tokens, width]`, from the slot of position `at`. Tokens past the last slot wrap
    /// around to the first ones.
    fn append_wrapping(
        &mut self,
        g: &mut Graph,
        index: usize,
        which: KeyOrValue,
        row: usize,
        at: Tensor,
        rows: Tensor,
    ) {
        let sizes = g.shape(rows).to_vec();
        let (tokens, slots) = (sizes.get(3).copied().unwrap_or(1), self.cache.slots);
        let number = |g: &mut Graph, value: usize| {
            #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
            let value = g.scalar(value as f64, Dtype::I32);
            value
        };
        let slot_count = number(g, slots);
        let slot = g.remainder(at, slot_count);
        if tokens == 1 {
            return self.write(g, index, which, row, slot, rows, None);
        }
        // `past` tokens wrap around. Tokens are rolled so that these come first, and are written twice under a mask: to the
        // last slots without these, and to the first slots with these alone.
        let last = number(g, slots - tokens);
        let first = g.minimum(slot, last);
        let past = g.subtract(slot, first);
        let twice = g.concatenate(&[rows, rows], 3);
        let zero = number(g, 0);
        let count = number(g, tokens);
        let from = g.subtract(count, past);
        let rolled = g.dynamic_slice(twice, &[zero, zero, zero, from, zero], &sizes);
        let token = g.iota(Dtype::I32, &sizes, 3);
        let past = g.broadcast_like(past, token);
        let wraps = g.lt(token, past);
        let stays = g.not(wraps);
        self.write(g, index, which, row, first, rolled, Some(stays));
        self.write(g, index, which, row, zero, rolled, Some(wraps));
    }

    /// Writes `rows` from `slot`; with a `mask`, only where it is true.
    #[expect(clippy::too_many_arguments, reason = "a location in a cache has as many parts")]
    fn write(
        &mut self,
        g: &mut Graph,
        index: usize,
        which: KeyOrValue,
        row: usize,
        slot: Tensor,
        rows: Tensor,
        mask: Option<Tensor>,
    ) {
        let starts = self.starts(g, which, row, slot);
        let Some(part) = self.cache.parts.get_mut(index) else { return };
        let sizes = g.shape(rows).to_vec();
        let rows = match mask {
            None => rows,
            Some(mask) => {
                let old = g.dynamic_slice(part.value, &starts, &sizes);
                g.select(mask, rows, old)
            }
        };
        part.value = g.dynamic_update_slice(part.value, rows, &starts);
    }

    /// Returns the whole group, including other layers and what was appended: the elements, then the scales if it has any.
    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        self.cache.parts.iter().map(|part| part.value).collect()
    }

    /// Returns how keys and values are stored.
    pub(crate) fn cache_type(&self) -> CacheType {
        self.cache.cache_type
    }

    /// Returns the layer's index in [`tensors`](Self::tensors).
    pub(crate) fn index(&self) -> usize {
        self.layer
    }

    /// Returns the number of slots if this is a ring buffer.
    pub(crate) fn ring_slots(&self) -> Option<usize> {
        self.cache.is_ring.then_some(self.cache.slots)
    }

    /// Returns the first `size` positions as floats: `[batch, kv_heads, size, head_dim]`.
    pub(crate) fn prefix(&self, g: &mut Graph, which: KeyOrValue, size: usize) -> Tensor {
        let first = g.scalar(0.0, Dtype::I32);
        self.block(g, which, first, size)
    }

    /// Returns `size` positions from `offset`, an `i32` scalar, as floats: `[batch, kv_heads, size, head_dim]`.
    pub(crate) fn block(&self, g: &mut Graph, which: KeyOrValue, offset: Tensor, size: usize) -> Tensor {
        let starts = self.starts(g, which, 0, offset);
        let mut part = |part: &Part| {
            let mut sizes = g.shape(part.value).to_vec();
            [sizes[0], sizes[3]] = [1, size];
            let block = g.dynamic_slice(part.value, &starts, &sizes);
            g.reshape(block, &sizes[1..])
        };
        let parts: Vec<_> = self.cache.parts.iter().map(&mut part).collect();
        match *parts {
            [bytes, scales] => quantization::dequantize_q8_groups(g, bytes, scales),
            _ => parts[0],
        }
    }

    /// Returns the start indices of a slice at `position`.
    fn starts(&self, g: &mut Graph, which: KeyOrValue, row: usize, position: Tensor) -> [Tensor; 5] {
        let zero = g.scalar(0.0, Dtype::I32);
        // Not a constant, so that all layers share one dispatch.
        let part = g.host_number(2 * self.layer + which as usize);
        let part = g.host_scalar(part);
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        let row = g.scalar(row as f64, Dtype::I32);
        [part, row, zero, position, zero]
    }
}
