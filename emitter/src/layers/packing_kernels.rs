//! Kernels that the packing module calls.

use crate::{
    graph::{Graph, Tensor},
    kernels::{Call, Executable, Grid, Isa, Kernel},
};

/// Calls kernels in functions of the packing module, and collects them.
#[derive(Debug)]
pub(crate) struct PackingKernels {
    isa: Option<Isa>,
    pub(crate) executables: Vec<Executable>,
}

impl PackingKernels {
    /// Elements of a workgroup: some milliseconds of work of the slowest.
    const WORKGROUP_ELEMENTS: usize = 1 << 16;

    /// Returns those of an instruction set. Without one, there are no kernels.
    pub(crate) fn new(isa: Option<Isa>) -> Self {
        Self { isa, executables: Vec::new() }
    }

    /// Runs a kernel and returns its results.
    pub(super) fn call(&mut self, g: &mut Graph, kernel: impl Kernel, grid: Grid) -> Vec<Tensor> {
        let Some(isa) = self.isa else {
            return vec![g.fail("packing", "found a target without kernels, expected one with them")];
        };
        let Call { executable, operands, numbers } = Call::new(g, isa, kernel, grid);
        let results = g.dispatch(&executable, &operands, &numbers);
        self.executables.push(executable);
        results
    }

    /// Returns the grid of a kernel that packs so many items of this many elements.
    pub(super) fn grid(items: usize, elements: usize) -> Grid {
        Grid { items, grain: (Self::WORKGROUP_ELEMENTS / elements.max(1)).max(1) }
    }
}
