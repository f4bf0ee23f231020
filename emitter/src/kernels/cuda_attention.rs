//! Calls of `cuda/attention_*.c`, `cuda/append_*.c` and `cuda/prefill_attention_*.c`, which read and write the pages of the
//! cache.

use mlxcel_models::Attention;

use super::{
    arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction, arguments, kernels},
    attention::{CachedKeyValues, Overwritten},
};
use crate::{
    graph::{HostIndex, Tensor},
    types::TensorType,
};

/// The longest heads that the kernels are for, and what their dimensions are a multiple of: `VECTOR` of
/// `cuda/attention_rows.h`.
const MAX_HEAD_DIM: usize = 256;
const VECTOR: usize = 8;

kernels! { CudaNormHeads => "norm_heads", "cuda_norm_heads"; }

/// Returns whether the kernels are for a layer's attention.
pub(crate) fn has_gpu_attention(layer: &Attention) -> bool {
    layer.causal && layer.head_dim <= MAX_HEAD_DIM && layer.head_dim.is_multiple_of(VECTOR)
}

arguments! {
    /// The rotation of heads: pairs of dimensions, and whether these are neighbors.
    struct CudaRope {
        pairs: usize,
        interleaved: bool,
    }

    /// The norm of heads: 0 is none, 1 RMS, 2 layer. Its weights are of type 0, `f32`, 1, bf16, or 2, f16.
    struct CudaHeadNorm {
        norm: usize,
        norm_type: usize,
        norm_by_head: bool,
        epsilon: F32Bits,
        offset: F32Bits,
    }

    /// Normalizes the heads of queries and keys of several rows.
    struct CudaNormHeads {
        q: Tensor,
        k: Tensor,
        q_norm: Tensor,
        k_norm: Tensor,
        q_out: TensorType,
        k_out: TensorType,
        rows: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        head_norm: CudaHeadNorm,
    }

    /// Normalizes, rotates and appends the heads of one row of each sequence, and attends with it.
    struct CudaDecodeAttention {
        q: Tensor,
        k: Tensor,
        v: Tensor,
        cos: Tensor,
        sin: Tensor,
        q_norm: Tensor,
        k_norm: Tensor,
        cache: OverwrittenWithCounters,
        row_numbers: Tensor,
        pages: Tensor,
        /// Without sinks, any tensor of `f32`.
        sinks: Tensor,
        out: TensorType,
        partial: TensorType,
        layer: HostIndex,
        sequences: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        /// Twice the layers of the pool.
        parts: usize,
        /// Pages of a sequence in the table.
        table: usize,
        /// The most parts into which positions are divided, and how many give every multiprocessor a workgroup.
        chunks: usize,
        busy: usize,
        /// Zero means no window.
        window: usize,
        /// Zero means no cap.
        soft_cap: F32Bits,
        has_first_pages: bool,
        has_sinks: bool,
        rope: CudaRope,
        head_norm: CudaHeadNorm,
        /// Zero means no clipping.
        clip: F32Bits,
        scale: F32Bits,
        /// 0 is `f32`, 1 bf16, 2 f16.
        out_type: usize,
    }

    /// Rotates keys and appends keys and values of all rows to the cache.
    struct CudaAppend {
        k: Tensor,
        v: Tensor,
        cos: Tensor,
        sin: Tensor,
        cache: Overwritten,
        row_numbers: Tensor,
        layer: HostIndex,
        rows: usize,
        kv_heads: usize,
        head_dim: usize,
        rope: CudaRope,
        parts: usize,
    }

    /// Rotates queries and attends with all rows of each sequence to the cache, which has their keys and values.
    struct CudaPrefillAttention {
        q: Tensor,
        cos: Tensor,
        sin: Tensor,
        cache: CachedKeyValues,
        row_numbers: Tensor,
        pages: Tensor,
        sinks: Tensor,
        out: TensorType,
        layer: HostIndex,
        sequences: usize,
        rows: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        rope: CudaRope,
        parts: usize,
        table: usize,
        window: usize,
        scale: F32Bits,
        soft_cap: F32Bits,
        has_first_pages: bool,
        has_sinks: bool,
        /// 0 is `f32`, 1 bf16, 2 f16.
        out_type: usize,
    }
}

/// A cache that the kernel writes to, and counters, zero before and after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverwrittenWithCounters {
    pub(crate) cache: CachedKeyValues,
    pub(crate) counters: Tensor,
}

impl Argument for OverwrittenWithCounters {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        Overwritten(self.cache).add_to(arguments, name);
        self.counters.add_to(arguments, "counters");
        arguments.cache.end += 1;
    }
}

/// Selects the function by the type of the cache and the width of heads: up to 64, 128 or 256.
macro_rules! by_type_and_width {
    ($cache:expr, $head_dim:expr, $file:literal, $function:literal) => {{
        let width = match $head_dim {
            ..=64 => 0,
            65..=128 => 1,
            _ => 2,
        };
        let (file, names) = $cache.select([
            by_type_and_width!(@ $file, $function, "f32"),
            by_type_and_width!(@ $file, $function, "bf16"),
            by_type_and_width!(@ $file, $function, "f16"),
            by_type_and_width!(@ $file, $function, "q8"),
        ]);
        KernelFunction { file, name: names[width] }
    }};
    (@ $file:literal, $function:literal, $ty:literal) => {
        (
            concat!($file, "_", $ty),
            [
                concat!($function, "_", $ty, "_64"),
                concat!($function, "_", $ty, "_128"),
                concat!($function, "_", $ty, "_256"),
            ],
        )
    };
}

impl Kernel for CudaDecodeAttention {
    fn function(&self) -> KernelFunction {
        by_type_and_width!(self.cache.cache, self.head_dim, "attention", "cuda_decode_attention")
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for CudaPrefillAttention {
    fn function(&self) -> KernelFunction {
        by_type_and_width!(self.cache, self.head_dim, "prefill_attention", "cuda_prefill_attention")
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

impl Kernel for CudaAppend {
    fn function(&self) -> KernelFunction {
        let (file, name) = self.cache.0.select([
            ("append_f32", "cuda_append_f32"),
            ("append_bf16", "cuda_append_bf16"),
            ("append_f16", "cuda_append_f16"),
            ("append_q8", "cuda_append_q8"),
        ]);
        KernelFunction { file, name }
    }

    fn arguments(self) -> Arguments {
        Arguments::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        assert_eq!(stated_constant("cuda_decode_attention_f32_256", "vector"), Some(VECTOR));
    }
}
