//! Linear layers and embeddings.
//!
//! A linear layer is a dot product (`dot.rs`), of quantized weights (`quantized.rs`), or one of a kernel: `panels/` on CPUs
//! and `gpu_matvec.rs` for single rows on GPUs.

mod dot;
mod embedding;
mod gpu_matmul;
mod gpu_matvec;
mod layer;
mod named;
pub(super) mod panels;
mod quantized;
mod row_product;
mod shared_tensors;
mod vector;

pub(crate) use embedding::embedding;
pub(super) use gpu_matmul::{WHOLE_INPUTS, operand_rows};
pub(super) use gpu_matvec::{activated, added, gating, row, row_weights, takes_norm};
pub(crate) use layer::{linear, linears};
pub(super) use quantized::packed;
pub(crate) use row_product::{RowProduct, RowsProduct};
pub(super) use shared_tensors::{distinct_tensors, layer_outputs};
pub(super) use vector::vector;
