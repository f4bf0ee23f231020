//! The key/value cache.
//!
//! One mutable global holds the keys and values of all layers that keep as many positions. IREE merges globals that are
//! always stored alike, which an iree-compile of version 3.13 takes two caches of one shape to be; and one buffer is also
//! the cheapest to have. A quantised cache has a second one for its scales.
//!
//! Layers with a window keep what it can see and what one call writes: their positions go round, `position % slots`.

use mlxcel_artifacts::{CacheType, Float};
use mlxcel_models::{Attention, ModelConfig};
use safetensors::Dtype;

use super::{Builder, quantized};
use crate::{Global, Graph, Plan, Tensor, TensorType};

/// The cache as a function sees it.
pub(crate) struct Cache {
    groups: Vec<Group>,
    /// The group of each layer, and the layer's place in it.
    places: Vec<(usize, usize)>,
}

/// The layers that keep as many positions: `[2 · layers, batch, kv_heads, slots, head_dim]`, each layer's keys before its
/// values. What one head attends to lies together.
struct Group {
    /// What is cached; for [`CacheType::Q8`] its bytes, and `[…, head_dim / 32]` of scales.
    parts: Vec<Part>,
    kv: CacheType,
    /// Positions that there is room for, of every position or of the last ones.
    slots: usize,
    /// Whether positions go round.
    goes_round: bool,
}

/// A global with its value so far.
struct Part {
    /// Where it is kept for the next call, if it is.
    global: Option<Global>,
    value: Tensor,
}

/// One layer's part.
pub(crate) struct LayerCache<'a> {
    cache: &'a mut Group,
    layer: usize,
}

/// Keys or values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Half {
    Keys,
    Values,
}

impl Half {
    pub(crate) const BOTH: [Self; 2] = [Self::Keys, Self::Values];
}

impl Cache {
    /// The cache of `model`, whose layers have heads as `attention` has them.
    pub(crate) fn load(b: &mut Builder<'_>, model: &ModelConfig, attention: &Attention, plan: &Plan) -> Self {
        let kv = b.kv;
        let layers = model.blocks.iter().map(|block| plan.slots(block.attention.layer.window));
        let layers: Vec<_> = layers.collect();
        let mut sizes = layers.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let group = |slots| sizes.iter().position(|&size| size == slots).unwrap_or(0);
        let mut counts = vec![0; sizes.len()];
        let mut places = Vec::new();
        for slots in layers {
            let group = group(slots);
            places.push((group, counts[group]));
            counts[group] += 1;
        }
        let width = attention.head_dim;
        let mut groups = Vec::new();
        for (&slots, &count) in sizes.iter().zip(&counts) {
            let goes_round = slots < plan.capacity();
            let name = if goes_round { format!("cache_of_{slots}") } else { "cache".to_owned() };
            let mut part = |name: &str, dtype, width| {
                let shape = [2 * count, plan.batch, attention.kv_heads, slots, width];
                let global = b.module.state(name, TensorType::new(dtype, shape));
                let value = b.graph.load(&global);
                Part { global: Some(global), value }
            };
            let parts = match kv {
                CacheType::Float(float) => vec![part(&name, float.dtype(), width)],
                CacheType::Q8 => {
                    let scales = format!("{name}_scales");
                    vec![
                        part(&name, Dtype::I8, width),
                        part(&scales, Dtype::F16, width / CacheType::Q8_GROUP_SIZE),
                    ]
                }
            };
            groups.push(Group { parts, kv, slots, goes_round });
        }
        Self { groups, places }
    }

    /// Room for the keys and values of one call of `tokens` tokens, in `f32`, which every layer in turn writes anew.
    pub(crate) fn of_call(
        b: &mut Builder<'_>,
        model: &ModelConfig,
        attention: &Attention,
        batch: usize,
        tokens: usize,
    ) -> Self {
        let (float, shape) = (Float::F32, [2, batch, attention.kv_heads, tokens, attention.head_dim]);
        let part = Part { global: None, value: b.graph.full(0.0, float.dtype(), &shape) };
        let group =
            Group { parts: vec![part], kv: CacheType::Float(float), slots: tokens, goes_round: false };
        Self { groups: vec![group], places: vec![(0, 0); model.blocks.len()] }
    }

    pub(crate) fn layer(&mut self, layer: usize) -> Option<LayerCache<'_>> {
        let &(group, layer) = self.places.get(layer)?;
        Some(LayerCache { cache: self.groups.get_mut(group)?, layer })
    }

    /// Makes what was appended the module's state.
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
    /// Writes `new`, `[batch, tokens, kv_heads, head_dim]`, from each row's `start`, `[batch]`.
    pub(crate) fn append(&mut self, g: &mut Graph, half: Half, start: Tensor, new: Tensor) {
        let new = match self.cache.kv {
            CacheType::Float(float) => vec![g.convert(new, float.dtype())],
            CacheType::Q8 => quantized::q8_groups(g, new).to_vec(),
        };
        for (index, new) in new.into_iter().enumerate() {
            self.append_part(g, index, half, start, new);
        }
    }

    fn append_part(&mut self, g: &mut Graph, index: usize, half: Half, start: Tensor, new: Tensor) {
        let &[batch, tokens, kv_heads, width] = g.shape(new) else {
            return;
        };
        for row in 0..batch {
            let rows = g.slice_dimension(new, 0, row, row + 1);
            let rows = g.transpose(rows, &[0, 2, 1, 3]);
            let rows = g.reshape(rows, &[1, 1, kv_heads, tokens, width]);
            let at = g.slice(start, &[row], &[row + 1]);
            let at = g.reshape(at, &[]);
            if self.cache.goes_round {
                self.append_round(g, index, half, row, at, rows);
                continue;
            }
            let starts = self.starts(g, half, row, at);
            if let Some(part) = self.cache.parts.get_mut(index) {
                part.value = g.dynamic_update_slice(part.value, rows, &starts);
            }
        }
    }

    /// Writes `rows`, `[1, 1, kv_heads, tokens, width]`, from the slot of position `at` on, and what reaches past the last
    /// slot from the first one on.
    fn append_round(
        &mut self,
        g: &mut Graph,
        index: usize,
        half: Half,
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
        let all = number(g, slots);
        let slot = g.remainder(at, all);
        if tokens == 1 {
            return self.write(g, index, half, row, slot, rows, None);
        }
        // How many tokens are past the end. Those lie first in both writes, the others after them: in the last slots, and
        // in the first ones.
        let last = number(g, slots - tokens);
        let first = g.minimum(slot, last);
        let past = g.subtract(slot, first);
        let twice = g.concatenate(&[rows, rows], 3);
        let zero = number(g, 0);
        let whole = number(g, tokens);
        let from = g.subtract(whole, past);
        let rolled = g.dynamic_slice(twice, &[zero, zero, zero, from, zero], &sizes);
        let place = g.iota(Dtype::I32, &sizes, 3);
        let past = g.broadcast_like(past, place);
        let is_past = g.lt(place, past);
        let is_not = g.not(is_past);
        self.write(g, index, half, row, first, rolled, Some(is_not));
        self.write(g, index, half, row, zero, rolled, Some(is_past));
    }

    /// Writes those of `rows` for which `kept` is true, or all, from `slot` on.
    #[expect(clippy::too_many_arguments, reason = "a place in a cache has as many parts")]
    fn write(
        &mut self,
        g: &mut Graph,
        index: usize,
        half: Half,
        row: usize,
        slot: Tensor,
        rows: Tensor,
        kept: Option<Tensor>,
    ) {
        let starts = self.starts(g, half, row, slot);
        let Some(part) = self.cache.parts.get_mut(index) else { return };
        let sizes = g.shape(rows).to_vec();
        let rows = match kept {
            None => rows,
            Some(kept) => {
                let old = g.dynamic_slice(part.value, &starts, &sizes);
                g.select(kept, rows, old)
            }
        };
        part.value = g.dynamic_update_slice(part.value, rows, &starts);
    }

    /// The whole cache of this layer and others, with what was appended: what is cached, then its scales where it has any.
    pub(crate) fn all(&self) -> Vec<Tensor> {
        self.cache.parts.iter().map(|part| part.value).collect()
    }

    /// What it holds.
    pub(crate) fn kv(&self) -> CacheType {
        self.cache.kv
    }

    /// Which part of [`all`](Self::all) this is.
    pub(crate) fn layer(&self) -> usize {
        self.layer
    }

    /// How many slots positions go round in, if they do.
    pub(crate) fn round(&self) -> Option<usize> {
        self.cache.goes_round.then_some(self.cache.slots)
    }

    /// The first `size` positions: `[batch, kv_heads, size, head_dim]`.
    pub(crate) fn prefix(&self, g: &mut Graph, half: Half, size: usize) -> Tensor {
        let first = g.scalar(0.0, Dtype::I32);
        self.block(g, half, first, size)
    }

    /// `size` positions from `offset`, an `i32` scalar: `[batch, kv_heads, size, head_dim]` of floats.
    pub(crate) fn block(&self, g: &mut Graph, half: Half, offset: Tensor, size: usize) -> Tensor {
        let starts = self.starts(g, half, 0, offset);
        let mut part = |part: &Part| {
            let mut sizes = g.shape(part.value).to_vec();
            [sizes[0], sizes[3]] = [1, size];
            let block = g.dynamic_slice(part.value, &starts, &sizes);
            g.reshape(block, &sizes[1..])
        };
        let parts: Vec<_> = self.cache.parts.iter().map(&mut part).collect();
        match *parts {
            [bytes, scales] => quantized::from_q8_groups(g, bytes, scales),
            _ => parts[0],
        }
    }

    fn starts(&self, g: &mut Graph, half: Half, row: usize, position: Tensor) -> [Tensor; 5] {
        let zero = g.scalar(0.0, Dtype::I32);
        // Not a constant, so that every layer's code is the same.
        let part = g.host_number(2 * self.layer + half as usize);
        let part = g.host_scalar(part);
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        let row = g.scalar(row as f64, Dtype::I32);
        [part, row, zero, position, zero]
    }
}
