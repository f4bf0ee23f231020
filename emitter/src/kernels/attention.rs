//! Calls of `cpu/attention.c` and `cuda/attention_*.c`.

use super::arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction, arguments, kernels};
use crate::{
    graph::{HostIndex, Tensor},
    types::TensorType,
};

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
    fn select<T: Copy>(self, items: [T; 4]) -> T {
        match self {
            Self::F32(_) => items[0],
            Self::Bf16(_) => items[1],
            Self::F16(_) => items[2],
            Self::Q8 { .. } => items[3],
        }
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
    /// What attention reads.
    struct AttentionInputs {
        q: Tensor,
        cache: CachedKeyValues,
        positions: Tensor,
        lengths: Tensor,
    }

    /// The shapes of queries and of the cache.
    struct AttentionShape {
        batch: usize,
        tokens: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        capacity: usize,
    }

    /// Which positions a token sees, and how scores are capped. Zero means no window and no cap.
    struct AttentionMask {
        window: usize,
        soft_cap: F32Bits,
        causal: bool,
    }

    /// Attends to all positions at once, on a CPU.
    struct Attention {
        inputs: AttentionInputs,
        out: TensorType,
        layer: HostIndex,
        shape: AttentionShape,
        /// Tokens of a workgroup.
        tile: usize,
        mask: AttentionMask,
    }

    /// Attends to chunks of positions, on a CPU. [`AttentionCombine`] merges the results.
    struct AttentionChunks {
        inputs: AttentionInputs,
        partial: TensorType,
        max_sum: TensorType,
        layer: HostIndex,
        shape: AttentionShape,
        /// Tokens of a workgroup.
        tile: usize,
        mask: AttentionMask,
        /// Positions of a chunk.
        chunk: usize,
    }

    /// Merges chunks on a CPU.
    struct AttentionCombine {
        partial: Tensor,
        max_sum: Tensor,
        out: TensorType,
        chunks: usize,
        rows: usize,
        head_dim: usize,
    }

    /// Attends to chunks of positions, on a GPU. [`CudaAttentionCombine`] merges the results.
    struct CudaAttention {
        inputs: AttentionInputs,
        sums: TensorType,
        max_sum: TensorType,
        layer: HostIndex,
        shape: AttentionShape,
        /// Heads of a workgroup.
        rows: usize,
        mask: AttentionMask,
        /// The number of chunks.
        chunks: usize,
    }

    /// Merges chunks on a GPU.
    struct CudaAttentionCombine {
        partial_sums: Tensor,
        max_sum: Tensor,
        out: TensorType,
        chunks: usize,
        rows: usize,
        head_dim: usize,
    }
}

kernels! {
    AttentionCombine => "attention", "attention_combine";
    CudaAttentionCombine => "attention_combine", "cuda_attention_combine";
}

impl Kernel for Attention {
    fn function(&self) -> KernelFunction {
        let names = ["attention_f32", "attention_bf16", "attention_f16", "attention_q8"];
        KernelFunction { file: "attention", name: self.inputs.cache.select(names) }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for AttentionChunks {
    fn function(&self) -> KernelFunction {
        let names =
            ["attention_chunks_f32", "attention_chunks_bf16", "attention_chunks_f16", "attention_chunks_q8"];
        KernelFunction { file: "attention", name: self.inputs.cache.select(names) }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for CudaAttention {
    fn function(&self) -> KernelFunction {
        let (file, name) = self.inputs.cache.select([
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
