//! The key/value cache: pools of pages.
//!
//! A page has the keys and values of 64 positions of a sequence, of all layers of its pool. Layers with a window of one size
//! share a pool, so that a window keeps only the pages that it reaches. How a page orders the elements of a head is up to
//! what computes: generated code has `[64, head_dim]`, kernels on CPUs have the keys transposed.

use mlxcel_artifacts::{CacheType, Float, entry::PAGE};
use mlxcel_models::ModelConfig;
use safetensors::Dtype;

use super::{attention::PageTable, builder::Builder, quantization};
use crate::{
    graph::{Graph, Tensor},
    pools::windows,
};

/// The cache inside a function.
pub(crate) struct Cache {
    pools: Vec<PoolValue>,
    /// The pool of each layer, and the layer's index in it.
    places: Vec<(usize, usize)>,
    /// The numbers of the parts of the largest pool.
    numbers: Tensor,
}

/// A pool with its value so far.
pub(crate) struct PoolValue {
    /// The elements, and their scales if they are quantized: `[pages, 2 · layers, kv_heads, 64, …]`.
    pub(crate) parts: Vec<Tensor>,
    pub(crate) table: PageTable,
    /// What kernels of GPUs take besides, in a call in place.
    pub(crate) staged: Option<Staged>,
}

/// Numbers of a call in place, on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staged {
    /// The positions, the slots and the first pages of rows, `[3, rows]`.
    pub(crate) row_numbers: Tensor,
    /// Zeros, with which kernels count workgroups.
    pub(crate) counters: Tensor,
}

/// One layer's part of the cache.
pub(crate) struct LayerCache<'a> {
    pool: &'a mut PoolValue,
    cache_type: CacheType,
    layer: usize,
    numbers: Tensor,
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
    /// Returns the cache of `model` with the values of a function's arguments, in the order of [`pools`](crate::pools::pools).
    pub(crate) fn new(g: &mut Graph, model: &ModelConfig, pools: Vec<PoolValue>) -> Self {
        // Not constants, so that all layers share one dispatch.
        let numbers: Vec<i32> = (0..).take(2 * model.blocks.len()).collect();
        let numbers = g.constant_i32(&numbers, &[numbers.len()]);
        let numbers = g.barrier(numbers);
        let windows = windows(model);
        let mut counts = vec![0; windows.len()];
        let place = |window: Option<usize>| {
            let pool = windows.iter().position(|&known| known == window).unwrap_or(0);
            counts[pool] += 1;
            (pool, counts[pool] - 1)
        };
        let places = model.blocks.iter().map(|block| block.attention.layer.window).map(place).collect();
        Self { pools, places, numbers }
    }

    /// Returns a cache for one call, in `f32`. All layers share it, each overwriting the one before.
    pub(crate) fn transient(
        b: &mut Builder<'_>,
        model: &ModelConfig,
        pages: usize,
        table: PageTable,
    ) -> Self {
        let heads = model.blocks.first().map(|block| &block.attention.layer);
        let (kv_heads, head_dim) = heads.map_or((1, 1), |layer| (layer.kv_heads, layer.head_dim));
        b.cache_type = CacheType::Float(Float::F32);
        let value = b.graph.uninitialized(Dtype::F32, &[pages, 2, kv_heads, PAGE, head_dim]);
        let pools = vec![PoolValue { parts: vec![value], table, staged: None }];
        let numbers = b.graph.uninitialized(Dtype::I32, &[1]);
        Self { pools, places: vec![(0, 0); model.blocks.len()], numbers }
    }

    /// Returns one layer's part.
    pub(crate) fn layer(&mut self, cache_type: CacheType, layer: usize) -> Option<LayerCache<'_>> {
        let &(pool, layer) = self.places.get(layer)?;
        let numbers = self.numbers;
        Some(LayerCache { pool: self.pools.get_mut(pool)?, cache_type, layer, numbers })
    }

    /// Returns a tensor of a pool with what was appended.
    pub(crate) fn tensor(&self, pool: usize, part: usize) -> Option<Tensor> {
        self.pools.get(pool)?.parts.get(part).copied()
    }
}

impl LayerCache<'_> {
    /// Returns which pages belong to which sequence.
    pub(crate) fn table(&self) -> PageTable {
        self.pool.table
    }

    /// Returns the whole pool, including other layers and what was appended: the elements, then the scales if it has any.
    pub(crate) fn tensors(&self) -> &[Tensor] {
        &self.pool.parts
    }

    /// Replaces the whole pool, after a kernel wrote to it.
    pub(crate) fn replace(&mut self, tensors: &[Tensor]) {
        self.pool.parts.copy_from_slice(tensors);
    }

    /// Returns what kernels of GPUs take besides, in a call in place.
    pub(crate) fn staged(&self) -> Option<Staged> {
        self.pool.staged
    }

    /// Replaces the counters, after a kernel counted with them.
    pub(crate) fn replace_counters(&mut self, counters: Tensor) {
        if let Some(staged) = &mut self.pool.staged {
            staged.counters = counters;
        }
    }

    /// Returns how keys and values are stored.
    pub(crate) fn cache_type(&self) -> CacheType {
        self.cache_type
    }

    /// Returns the layer's index in the pool.
    pub(crate) fn index(&self) -> usize {
        self.layer
    }

    /// Returns twice the number of layers of the pool.
    pub(crate) fn parts(&self, g: &Graph) -> usize {
        self.pool.parts.first().and_then(|&part| g.shape(part).get(1).copied()).unwrap_or(0)
    }

    /// Writes `new`, `[batch, tokens, kv_heads, head_dim]`, to the slots of the call's rows.
    pub(crate) fn append(&mut self, g: &mut Graph, which: KeyOrValue, new: Tensor) {
        let Some(slots) = self.pool.table.slots else { return };
        let &[batch, tokens, kv_heads, _] = g.shape(new) else { return };
        let index = self.row_indices(g, which, slots, kv_heads);
        let new = match self.cache_type {
            CacheType::Float(float) => vec![g.convert(new, float.dtype())],
            CacheType::Q8 => quantization::quantize_q8_groups(g, new).to_vec(),
        };
        for (part, new) in self.pool.parts.iter_mut().zip(new) {
            let width = g.shape(new).last().copied().unwrap_or(1);
            let rows = g.reshape(new, &[batch * tokens * kv_heads, width]);
            *part = g.write_rows(*part, index, rows);
        }
    }

    /// Returns the index of the layer's keys or values in the pool, an `i32` scalar.
    fn part(&self, g: &mut Graph, which: KeyOrValue) -> Tensor {
        let part = 2 * self.layer + which as usize;
        let part = g.slice(self.numbers, &[part], &[part + 1]);
        g.reshape(part, &[])
    }

    /// Returns where each head of each row goes, in rows of the pool from its first page on: `[rows · kv_heads]`.
    fn row_indices(&self, g: &mut Graph, which: KeyOrValue, slots: Tensor, kv_heads: usize) -> Tensor {
        let rows = g.shape(slots).iter().product::<usize>();
        let shape = [rows, kv_heads];
        let parts = self.parts(g);
        let number = |g: &mut Graph, value: usize| {
            #[expect(clippy::cast_precision_loss, reason = "a number of heads and positions of a page")]
            let value = g.full(value as f64, Dtype::I32, &shape);
            value
        };
        let slot = g.broadcast_in_dim(slots, &shape, &[0]);
        let page_size = number(g, PAGE);
        let (page, place) = (g.divide(slot, page_size), g.remainder(slot, page_size));
        let part = self.part(g, which);
        let part = g.broadcast_in_dim(part, &shape, &[]);
        let all_parts = number(g, parts);
        let of_page = g.multiply(page, all_parts);
        let of_part = g.add(of_page, part);
        let heads = number(g, kv_heads);
        let of_part = g.multiply(of_part, heads);
        let head = g.iota(Dtype::I32, &shape, 1);
        let of_head = g.add(of_part, head);
        let of_head = g.multiply(of_head, page_size);
        let index = g.add(of_head, place);
        g.reshape(index, &[rows * kv_heads])
    }

    /// Returns the pages `table`, `[sequences, pages]`, as floats: `[sequences, kv_heads, pages · 64, head_dim]`.
    pub(crate) fn pages(&self, g: &mut Graph, which: KeyOrValue, table: Tensor) -> Tensor {
        let part = self.part(g, which);
        let mut take = |&tensor: &Tensor| {
            let taken = g.take_pages(tensor, table, part);
            let &[sequences, pages, kv_heads, page, width] = g.shape(taken) else { return taken };
            let by_head = g.transpose(taken, &[0, 2, 1, 3, 4]);
            g.reshape(by_head, &[sequences, kv_heads, pages * page, width])
        };
        let parts: Vec<_> = self.pool.parts.iter().map(&mut take).collect();
        match *parts {
            [bytes, scales] => quantization::dequantize_q8_groups(g, bytes, scales),
            _ => parts[0],
        }
    }
}
