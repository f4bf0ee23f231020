//! Programs, the results of [`emit`](crate::emit).

use std::collections::BTreeMap;

use mlxcel_artifacts::{
    Serving, Traffic,
    entry::{Entry, Parameter},
};

use crate::{kernels::Object, packing::Packed};

/// A module with all entry points of a model, and the facts that a bundle records about it.
#[derive(Debug, Clone)]
pub struct Program {
    /// The module as MLIR text: StableHLO in generic form.
    pub mlir: String,
    /// The entry points of the module.
    pub entries: Vec<Entry>,
    /// The tensors of the checkpoint that the module or the packing module reads.
    pub parameters: Vec<Parameter>,
    /// How the module's parameters are made from the checkpoint, if they differ from it.
    pub packed: Option<Packed>,
    /// Bytes of parameters that a decode step reads.
    pub step_bytes: u64,
    /// How the module serves several sequences, if it has a model.
    pub serving: Option<Serving>,
    /// How much the kernels read and write, by the names of their dispatches.
    pub dispatches: BTreeMap<String, Traffic>,
    /// Whether loops may update what they carry where it is: their turns copy what others may have.
    pub loops_in_place: bool,
    /// The objects that the module is linked with.
    pub objects: Vec<Object>,
}
