//! The key/value cache.
//!
//! One mutable global holds the keys and values of all layers. IREE merges globals that are always stored alike, which
//! an iree-compile of version 3.13 takes two caches of one shape to be; and one buffer is also the cheapest to have.

use mlxcel_models::Attention;
use safetensors::Dtype;

use super::Builder;
use crate::{Global, Graph, Tensor, TensorType};

/// The cache as a function sees it: `[2 · layers, batch, kv_heads, capacity, head_dim]`, each layer's keys before its
/// values. What one head attends to lies together.
pub(crate) struct Cache {
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
        let shape = [2 * layers, batch, attention.kv_heads, capacity, attention.head_dim];
        let global = b.module.state("cache", TensorType::new(b.kv, shape));
        let value = b.graph.load(&global);
        Self { global, value }
    }

    pub(crate) fn layer(&mut self, layer: usize) -> LayerCache<'_> {
        LayerCache { cache: self, layer }
    }

    /// Makes what was appended the module's state.
    pub(crate) fn store(self, g: &mut Graph) {
        g.store(&self.global, self.value);
    }
}

impl LayerCache<'_> {
    /// Writes `new`, `[batch, tokens, kv_heads, head_dim]`, from each row's `start`, `[batch]`.
    pub(crate) fn append(&mut self, g: &mut Graph, half: Half, start: Tensor, new: Tensor) {
        let new = g.convert(new, self.cache.global.ty.dtype);
        let &[batch, tokens, kv_heads, head_dim] = g.shape(new) else {
            return;
        };
        for row in 0..batch {
            let part = g.slice_dimension(new, 0, row, row + 1);
            let part = g.transpose(part, &[0, 2, 1, 3]);
            let part = g.reshape(part, &[1, 1, kv_heads, tokens, head_dim]);
            let at = g.slice(start, &[row], &[row + 1]);
            let at = g.reshape(at, &[]);
            let starts = self.starts(g, half, row, at);
            self.cache.value = g.dynamic_update_slice(self.cache.value, part, &starts);
        }
    }

    /// The whole cache, with what was appended.
    pub(crate) fn all(&self) -> Tensor {
        self.cache.value
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

    /// `size` positions from `offset`, an `i32` scalar: `[batch, kv_heads, size, head_dim]`.
    pub(crate) fn block(&self, g: &mut Graph, half: Half, offset: Tensor, size: usize) -> Tensor {
        let starts = self.starts(g, half, 0, offset);
        let mut sizes = self.cache.global.ty.shape.clone();
        [sizes[0], sizes[3]] = [1, size];
        let part = g.dynamic_slice(self.cache.value, &starts, &sizes);
        g.reshape(part, &sizes[1..])
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
