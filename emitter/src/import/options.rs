//! How a program is compiled.

use std::collections::BTreeMap;

use super::sizes::Sizes;
use crate::kernels::{Isa, LinkedKernels};

/// How a program is compiled.
#[derive(Debug, Clone, Default)]
pub struct ProgramOptions {
    /// Sizes that the program leaves open. Each function is compiled once for each of these; once if there are none.
    pub sizes: Vec<Sizes>,
    /// The arguments that the caller gives away for results.
    pub state: StateArguments,
    /// The tensors that take the place of arguments: names of parameters by names of arguments.
    pub parameters: BTreeMap<String, String>,
    /// The instruction set that kernels are for, if the target has kernels.
    pub isa: Option<Isa>,
    /// Whether the target has elements of 32 bits alone, and integers of 64.
    pub words_only: bool,
    /// The kernels that calls may name.
    pub kernels: LinkedKernels,
}

/// The arguments that a caller gives away, so that they are the state of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StateArguments {
    /// Those that the program says: donated arguments.
    #[default]
    Donated,
    /// None.
    None,
    /// Those with these names, or whose names begin with one and go on with `[` or `.`.
    Named(Vec<String>),
}
