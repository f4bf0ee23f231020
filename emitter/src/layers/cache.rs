//! The key/value cache.
//!
//! One mutable global holds the keys and values of all layers. IREE merges globals that are always stored alike, which
//! an iree-compile of version 3.13 takes two caches of one shape to be; and one buffer is also the cheapest to have. A
//! quantised cache has a second one for its scales.

use mlxcel_models::Attention;
use safetensors::Dtype;

use super::{Builder, quantized};
use crate::{Global, Graph, Kv, Tensor, TensorType, plan::CACHE_GROUP};

/// The cache as a function sees it: `[2 · layers, batch, kv_heads, capacity, head_dim]`, each layer's keys before its
/// values. What one head attends to lies together.
pub(crate) struct Cache {
    /// What is cached; for [`Kv::Q8`] its bytes, and `[…, head_dim / 32]` of scales.
    parts: Vec<Part>,
    kv: Kv,
}

/// A global with its value so far.
struct Part {
    global: Global,
    value: Tensor,
}

/// One layer's part.
pub(crate) struct LayerCache<'a> {
    cache: &'a mut Cache,
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
    /// The cache for `layers` layers with heads as `attention` has them.
    pub(crate) fn load(
        b: &mut Builder<'_>,
        layers: usize,
        attention: &Attention,
        batch: usize,
        capacity: usize,
    ) -> Self {
        let kv = b.kv;
        let mut part = |name: &str, dtype, width| {
            let shape = [2 * layers, batch, attention.kv_heads, capacity, width];
            let global = b.module.state(name, TensorType::new(dtype, shape));
            let value = b.graph.load(&global);
            Part { global, value }
        };
        let width = attention.head_dim;
        let parts = match kv {
            Kv::Float(dtype) => vec![part("cache", dtype, width)],
            Kv::Q8 => {
                vec![part("cache", Dtype::I8, width), part("cache_scales", Dtype::F16, width / CACHE_GROUP)]
            }
        };
        Self { parts, kv }
    }

    pub(crate) fn layer(&mut self, layer: usize) -> LayerCache<'_> {
        LayerCache { cache: self, layer }
    }

    /// Makes what was appended the module's state.
    pub(crate) fn store(self, g: &mut Graph) {
        self.parts.iter().for_each(|part| g.store(&part.global, part.value));
    }
}

impl LayerCache<'_> {
    /// Writes `new`, `[batch, tokens, kv_heads, head_dim]`, from each row's `start`, `[batch]`.
    pub(crate) fn append(&mut self, g: &mut Graph, half: Half, start: Tensor, new: Tensor) {
        let new = match self.cache.kv {
            Kv::Float(dtype) => vec![g.convert(new, dtype)],
            Kv::Q8 => quantized::q8_groups(g, new).to_vec(),
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
            let starts = self.starts(g, half, row, at);
            if let Some(part) = self.cache.parts.get_mut(index) {
                part.value = g.dynamic_update_slice(part.value, rows, &starts);
            }
        }
    }

    /// The whole cache, with what was appended: what is cached, then its scales where it has any.
    pub(crate) fn all(&self) -> Vec<Tensor> {
        self.cache.parts.iter().map(|part| part.value).collect()
    }

    /// What it holds.
    pub(crate) fn kv(&self) -> Kv {
        self.cache.kv
    }

    /// Which layer's part this is.
    pub(crate) fn layer(&self) -> usize {
        self.layer
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
            let mut sizes = part.global.ty.shape.clone();
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
