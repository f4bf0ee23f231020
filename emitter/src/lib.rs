//! From a model's description to StableHLO.
//!
//! [`emit`] interprets a [`ModelConfig`](mlxcel_models::ModelConfig) and gives a [`Program`]: the text of one module with
//! a prefill entry per token bucket and a decode entry per cache bucket, over one set of weights and one cache.
//!
//! - A [`Graph`] is a function as a plain value: typed ops, no MLIR. Shapes and element types are checked as ops are
//!   added, and the first error surfaces once, in [`Graph::finish`], with its scope.
//! - `layers/` are the parts of a transformer, one of each: attention, mlp, norm, rope, linear. No family is named there.
//! - `lower.rs` alone knows MLIR.
//! - What entries take and give is [`mlxcel_artifacts::signature`]'s to say; `transformer.rs` walks its list.
//!
//! Start at `transformer.rs`, then `layers/attention.rs` and `graph.rs`.

mod error;
mod forms;
mod graph;
mod kernels;
mod layers;
mod lower;
mod module;
mod ops;
mod packing;
mod plan;
mod transformer;
mod types;

pub use error::Error;
pub use forms::{Kv, Quant};
pub use graph::{Function, Graph, HostIndex, Tensor};
pub use kernels::{Isa, Object, objects};
pub use module::{Global, Module};
pub use ops::{DotDimensions, GatherDimensions, Reduction, ScatterDimensions};
pub use packing::Packed;
pub use plan::{Numerics, Plan, Products, Task};
pub use transformer::emit;
pub use types::TensorType;

/// What [`emit`] gives.
#[derive(Debug, Clone)]
pub struct Program {
    /// The module as MLIR text: StableHLO in generic form.
    pub mlir: String,
    /// Its entry points.
    pub entries: Vec<mlxcel_artifacts::entry::Entry>,
    /// The checkpoint's tensors that it, or the packing module, reads.
    pub parameters: Vec<mlxcel_artifacts::entry::Parameter>,
    /// How the parameters that it reads are made from those; none where they are the same.
    pub packed: Option<Packed>,
    /// Bytes of parameters that a decode step reads.
    pub step_bytes: u64,
    /// How many positions a sequence may go back without being computed again; any number, where there is none.
    pub rewind: Option<usize>,
    /// What its kernels read and write, by the names of their dispatches.
    pub dispatches: std::collections::BTreeMap<String, mlxcel_artifacts::Traffic>,
    /// The objects that it is linked with.
    pub objects: Vec<Object>,
}
