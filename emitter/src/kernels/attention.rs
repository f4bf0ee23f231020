//! Calls of `cpu/append.c` and `cpu/attention.c`, which write and read the pages of the cache.

use super::arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction, arguments, kernels};
use crate::{
    graph::{HostIndex, Tensor},
    types::TensorType,
};

/// The dimensions of a head that the kernels have room for, as in `attention_tiles.h`.
pub(crate) const MAX_HEAD_DIM: usize = 256;

/// The cache of keys and values, by element type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CachedKeyValues {
    F32(Tensor),
    Bf16(Tensor),
    F16(Tensor),
    Q8 { cache: Tensor, scales: Tensor },
}

impl CachedKeyValues {
    /// Selects the item for the element type: `[f32, bf16, f16, q8]`.
    pub(super) fn select<T: Copy>(self, items: [T; 4]) -> T {
        match self {
            Self::F32(_) => items[0],
            Self::Bf16(_) => items[1],
            Self::F16(_) => items[2],
            Self::Q8 { .. } => items[3],
        }
    }
}

/// A cache that the kernel writes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overwritten(pub(crate) CachedKeyValues);

impl Argument for Overwritten {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        self.0.add_to(arguments, name);
        arguments.overwrites_cache = true;
    }
}

impl Argument for CachedKeyValues {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        let first = arguments.operands.len();
        match self {
            Self::F32(cache) | Self::Bf16(cache) | Self::F16(cache) => cache.add_to(arguments, name),
            Self::Q8 { cache, scales } => {
                cache.add_to(arguments, name);
                scales.add_to(arguments, "scales");
            }
        }
        arguments.cache = first..arguments.operands.len();
    }
}

arguments! {
    /// The rows of a call by sequence, see [`ArgumentKind`](mlxcel_artifacts::entry::ArgumentKind).
    struct RowTables {
        begins: Tensor,
        starts: Tensor,
        pages: Tensor,
    }

    /// The shapes of queries and of the cache.
    struct AttentionShape {
        rows: usize,
        sequences: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        /// Twice the layers of the pool.
        parts: usize,
        /// Pages of a sequence in the table.
        table: usize,
    }

    /// Which positions a row sees, and how scores are capped. Zero means no window and no cap.
    struct AttentionMask {
        window: usize,
        soft_cap: F32Bits,
        causal: bool,
    }

    /// Attends to the pages of each row's sequence.
    struct Attention {
        q: Tensor,
        cache: CachedKeyValues,
        /// Without sinks, any tensor.
        sinks: Tensor,
        tables: RowTables,
        out: TensorType,
        layer: HostIndex,
        shape: AttentionShape,
        mask: AttentionMask,
        has_sinks: bool,
        /// The parts into which the work is divided.
        items: usize,
    }

    /// Attends to chunks of positions. [`AttentionCombine`] merges the results.
    struct AttentionChunks {
        q: Tensor,
        cache: CachedKeyValues,
        tables: RowTables,
        partial: TensorType,
        max_sum: TensorType,
        layer: HostIndex,
        shape: AttentionShape,
        mask: AttentionMask,
        chunks: usize,
        /// The parts into which the work is divided.
        items: usize,
    }

    /// Merges the chunks of each head of each row.
    struct AttentionCombine {
        partial: Tensor,
        max_sum: Tensor,
        /// Without sinks, any tensor.
        sinks: Tensor,
        begins: Tensor,
        starts: Tensor,
        out: TensorType,
        chunks: usize,
        rows: usize,
        sequences: usize,
        heads: usize,
        head_dim: usize,
        window: usize,
        causal: bool,
        has_sinks: bool,
    }

    /// Where rows of a tensor are, in elements.
    struct QueryRows {
        q_stride: usize,
        q_offset: usize,
    }

    /// As [`QueryRows`].
    struct KeyRows {
        k_stride: usize,
        k_offset: usize,
    }

    /// As [`QueryRows`].
    struct ValueRows {
        v_stride: usize,
        v_offset: usize,
    }

    /// Rotates queries and keys, and writes keys and values to pages.
    struct Append {
        q: Tensor,
        k: Tensor,
        v: Tensor,
        /// Without a rotation, any tensor.
        cos: Tensor,
        sin: Tensor,
        tables: RowTables,
        cache: Overwritten,
        q_out: TensorType,
        layer: HostIndex,
        shape: AttentionShape,
        query_rows: QueryRows,
        key_rows: KeyRows,
        value_rows: ValueRows,
        /// The dimensions of a head that are rotated.
        rope_width: usize,
        interleaved: bool,
        q_scale: F32Bits,
        items: usize,
    }
}

impl Kernel for Attention {
    fn function(&self) -> KernelFunction {
        let names = ["attention_f32", "attention_bf16", "attention_f16", "attention_q8"];
        KernelFunction { file: "attention", name: self.cache.select(names) }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for AttentionChunks {
    fn function(&self) -> KernelFunction {
        let names =
            ["attention_chunks_f32", "attention_chunks_bf16", "attention_chunks_f16", "attention_chunks_q8"];
        KernelFunction { file: "attention", name: self.cache.select(names) }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

kernels! {
    AttentionCombine => "attention", "attention_combine";
}

impl Kernel for Append {
    fn function(&self) -> KernelFunction {
        let names = ["append_f32", "append_bf16", "append_f16", "append_q8"];
        KernelFunction { file: "append", name: self.cache.0.select(names) }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
