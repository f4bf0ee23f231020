//! Kernels in C, for work that generated code does far below the machine's limit, on CPUs and on GPUs.
//!
//! A kernel is a function of a file in `kernels/cpu/` or `kernels/cuda/`. `build.rs` compiles it ahead of time for every
//! [`Isa`], and iree-compile links it into the vmfb, so that a bundle is self-contained.
//!
//! A call is a value with named fields, such as [`Matmul`] or [`Route`]. The fields are the parameters of the C function, and
//! a test compares names, order, kinds and element types with the C prototypes (`prototypes.rs`). [`Executable`] is a call
//! with its types and its grid, which `lower/` turns into MLIR.
//!
//! A C function takes pointers to operands and results, then numbers that the host computes, then sizes that are known at
//! compile time. On a CPU it also takes the range of items that the workgroup does; on a GPU a workgroup does one item.

mod activate;
mod argmax;
mod arguments;
mod attention;
mod best;
mod capabilities;
mod chain;
mod compensate;
mod constant;
mod cost;
mod cuda_attention;
mod cuda_expert_rows;
mod cuda_experts;
mod cuda_groups;
mod cuda_matmul;
mod embed;
mod executable;
mod gather;
mod groups;
mod isa;
mod linked;
pub(crate) mod lower;
mod matmul;
mod matvec;
mod norm;
mod norm_rows;
mod numbers;
mod object;
mod panels;
#[cfg(test)]
mod prototypes;
mod quantize;
mod quantize_weights;
mod rotation;
mod route;
mod stage;
#[cfg(test)]
mod stated;
mod vector_product;

pub(crate) use activate::{Activate, ActivateGated, ActivateSizes, ActivationKind};
pub(crate) use argmax::Argmax;
pub(crate) use arguments::{F32Bits, Kernel};
pub(crate) use attention::{
    Append, Attention, AttentionChunks, AttentionCombine, AttentionMask, AttentionShape, CachedKeyValues,
    KeyRows, MAX_HEAD_DIM, Overwritten, QueryRows, RowTables, ValueRows,
};
pub(crate) use best::{BestToken, BestTokens};
pub(crate) use chain::{Chain, LINK_WORDS, Link, Place};
pub(crate) use compensate::{CompensateHalves, CompensateSuperblocks, FactorMoments, FactoredWeights};
pub use constant::KernelConstant;
pub(crate) use cuda_attention::{
    CudaAppend, CudaDecodeAttention, CudaHeadNorm, CudaNormHeads, CudaPrefillAttention, CudaRope,
    OverwrittenWithCounters, has_gpu_attention,
};
pub(crate) use cuda_expert_rows::{
    CudaChooseExperts, CudaCombineExperts, CudaMatmulExperts, CudaSortRows, GatedExperts,
};
pub(crate) use cuda_experts::{
    CudaExpertsAdd, CudaExpertsGated, ExpertMatrices, MAX_ACTIVE, MAX_EXPERTS, PairedRows,
};
pub(crate) use cuda_groups::{CudaGroups, GroupNumbers};
pub(crate) use cuda_matmul::{CudaMatmul, CudaMatmulGated, CudaMatmulSum, CudaMatrix, Tiles};
pub(crate) use embed::Embed;
pub(crate) use executable::{CPU_CONTAINER, Call, Executable, Grid};
pub(crate) use gather::{GatherFloats, GatherGroups, GatherPanels, GatherRows, PanelTable};
pub use isa::Isa;
pub use linked::{LinkedFunction, LinkedKernels};
pub(crate) use matmul::{Matmul, MatmulExperts, MatmulOperands};
pub(crate) use matvec::{
    MAX_MATRICES, Matvec, MatvecActivation, MatvecBias, MatvecGate, MatvecMatrix, MatvecProducts, MatvecRow,
    MatvecWeights, ROW_CAPACITY,
};
pub(crate) use norm::{AddNorm, NormRows, NormSizes, NormWeights};
pub(crate) use norm_rows::{AfterNorm, CudaNormRows, ROW_ELEMENTS};
pub(crate) use numbers::{element_number, norm_number, row_norm_number};
pub use object::{Object, objects};
pub(crate) use panels::{PackPairs, PackPanels};
pub(crate) use quantize::{QuantizeGroups, QuantizeRows, QuantizedResults};
pub(crate) use quantize_weights::{QuantizeHalves, QuantizeSuperblocks, WeightRows};
pub(crate) use rotation::Rotations;
pub(crate) use route::Route;
pub(crate) use stage::{Copy, CudaGather, CudaRotation, Stage};
#[cfg(test)]
pub(crate) use stated::stated_constant;
pub(crate) use vector_product::{LANES, ProductOfColumns, ProductOfRows};
