//! Kernels that a program brings along, as objects that somebody else compiled.

use std::{collections::BTreeMap, sync::Arc};

use super::{Isa, Object};

/// The kernels of a program's own, for one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkedKernels {
    /// LLVM's name of the target's architecture.
    pub arch: String,
    /// The functions that calls may name.
    pub functions: BTreeMap<String, LinkedFunction>,
    /// The architectures for which there are functions of other targets, by their names.
    pub elsewhere: BTreeMap<String, Vec<String>>,
}

/// A function that calls of a program may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedFunction {
    /// The objects that it needs. For a GPU that is one file of PTX.
    pub objects: Arc<[Object]>,
    /// The sizes of its parameters in bits, in order, if its object says them, as PTX does.
    pub parameter_bits: Option<Vec<u32>>,
}

impl LinkedKernels {
    /// Returns the first instruction set of the architecture: it decides the format of executables.
    pub(crate) fn isa(&self) -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.arch() == self.arch)
    }
}
