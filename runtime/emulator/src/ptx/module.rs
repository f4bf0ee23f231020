//! Modules of kernels.

use std::{collections::BTreeMap, sync::atomic::AtomicU8};

use super::{instruction::Instruction, target::Target};

/// What is wrong with a module or a launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Error {
    /// The kernel, and the instruction as it is written.
    pub place: String,
    /// What was found, and what was expected.
    pub problem: String,
}

impl Error {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

/// The kernels of a text.
#[derive(Debug)]
pub struct Module {
    pub(super) kernels: BTreeMap<String, Kernel>,
    /// Variables in global memory, which the driver gives places.
    pub(super) globals: Vec<Global>,
    pub(super) target: Target,
}

/// A variable in global memory.
#[derive(Debug)]
pub(crate) struct Global {
    pub(crate) name: String,
    /// Kernels write to it by its address.
    pub(crate) content: Box<[AtomicU8]>,
}

/// A kernel.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) code: Vec<Instruction>,
    /// Offsets and sizes of parameters.
    pub(crate) parameters: Vec<(usize, usize)>,
    /// The number of places for registers of a thread.
    pub(crate) registers: usize,
    /// Bytes of static shared memory of a block, with what is between its variables.
    pub(crate) shared: usize,
    /// Those that a GPU needs for it.
    pub(crate) shared_needed: usize,
    /// Bytes of local memory of a thread.
    pub(crate) local: usize,
    /// The most threads of a block, if it says so.
    pub(crate) threads_max: Option<usize>,
    /// The threads that a block has to have.
    pub(crate) threads_needed: Option<[u32; 3]>,
}

impl Module {
    /// Returns the names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// Returns the version of PTX that it is written in.
    pub(crate) fn ptx(&self) -> (u32, u32) {
        self.target.version
    }

    /// Returns the compute capability that it needs: 80 is 8.0.
    pub(crate) fn capability(&self) -> u32 {
        self.target.capability
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.get(name)
    }

    /// Returns the place and the size of a variable.
    pub(crate) fn global(&self, name: &str) -> Option<(u64, usize)> {
        let global = self.globals.iter().find(|global| global.name == name)?;
        Some((global.content.as_ptr() as u64, global.content.len()))
    }

    /// Returns the places and sizes of all variables.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, usize)> {
        self.globals.iter().map(|global| (global.content.as_ptr() as u64, global.content.len()))
    }
}
