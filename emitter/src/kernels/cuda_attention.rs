//! Calls of `cuda/attention_*.c`, which read the pages of the cache.

use super::{
    arguments::{Arguments, F32Bits, Kernel, KernelFunction, arguments, kernels},
    attention::CachedKeyValues,
};
use crate::{
    graph::{HostIndex, Tensor},
    types::TensorType,
};

arguments! {
    /// The pages of each sequence, see [`ArgumentKind`](mlxcel_artifacts::entry::ArgumentKind).
    struct CudaPageTable {
        pages: Tensor,
        /// Without first pages, any tensor of `i32`.
        first_pages: Tensor,
    }

    /// The shapes of queries and of the cache.
    struct CudaAttentionShape {
        sequences: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        /// Twice the layers of the pool.
        parts: usize,
        /// Pages of a sequence in the table.
        table: usize,
    }

    /// Attends with one query of each sequence to chunks of positions. [`CudaAttentionCombine`] merges the results.
    struct CudaAttention {
        q: Tensor,
        cache: CachedKeyValues,
        /// The position of each query.
        positions: Tensor,
        tables: CudaPageTable,
        partial: TensorType,
        max_sum: TensorType,
        layer: HostIndex,
        shape: CudaAttentionShape,
        /// Heads of a workgroup.
        rows: usize,
        /// Zero means no window.
        window: usize,
        /// Zero means no cap.
        soft_cap: F32Bits,
        /// The number of chunks.
        chunks: usize,
        has_first_pages: bool,
    }

    /// Merges the chunks of each head of each sequence.
    struct CudaAttentionCombine {
        partial: Tensor,
        max_sum: Tensor,
        /// Without sinks, any tensor of `f32`.
        sinks: Tensor,
        out: TensorType,
        chunks: usize,
        heads: usize,
        head_dim: usize,
        has_sinks: bool,
    }
}

kernels! {
    CudaAttentionCombine => "attention_combine", "cuda_attention_combine";
}

impl Kernel for CudaAttention {
    fn function(&self) -> KernelFunction {
        let (file, name) = self.cache.select([
            ("attention_f32", "cuda_attention_f32"),
            ("attention_bf16", "cuda_attention_bf16"),
            ("attention_f16", "cuda_attention_f16"),
            ("attention_q8", "cuda_attention_q8"),
        ]);
        KernelFunction { file, name }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}
