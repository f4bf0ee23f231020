#![doc = include_str!("../README.md")]

mod error;
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
