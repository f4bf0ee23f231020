//! Modules: globals, kernels and functions, and their text.

use std::collections::BTreeMap;

use mlxcel_artifacts::Traffic;

use crate::{
    error::Error,
    global::{Global, Init},
    graph::{Function, Graph, Tensor},
    kernels::{self, Call, Executable, Grid, Isa, Kernel, Object},
    lower,
    types::TensorType,
};

/// A module under construction.
#[derive(Debug)]
pub struct Module {
    name: String,
    globals: BTreeMap<String, Global>,
    /// Kernels, by symbol.
    executables: BTreeMap<String, Executable>,
    functions: Vec<Function>,
}

impl Module {
    /// Creates an empty module.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            globals: BTreeMap::new(),
            executables: BTreeMap::new(),
            functions: Vec::new(),
        }
    }

    /// Returns the global that holds the parameter `scope::key`, and declares it on first use.
    pub fn parameter(&mut self, scope: &str, key: &str, ty: TensorType) -> Global {
        let init = Init::Parameter { scope: scope.to_owned(), key: key.to_owned() };
        self.global(Global { symbol: key.to_owned(), ty, init })
    }

    /// Returns the mutable global `name`, and declares it on first use. Its initial value is zero.
    pub fn state(&mut self, name: &str, ty: TensorType) -> Global {
        self.global(Global { symbol: name.to_owned(), ty, init: Init::Zeros })
    }

    fn global(&mut self, global: Global) -> Global {
        self.globals.entry(global.symbol.clone()).or_insert(global).clone()
    }

    /// Runs a kernel in `graph`, a function of this module, and returns its results.
    pub(crate) fn call(
        &mut self,
        graph: &mut Graph,
        isa: Isa,
        kernel: impl Kernel,
        grid: Grid,
    ) -> Vec<Tensor> {
        let Call { executable, operands, numbers } = Call::new(graph, isa, kernel, grid);
        let results = graph.dispatch(&executable, &operands, &numbers);
        self.executables.entry(executable.symbol()).or_insert(executable);
        results
    }

    /// Returns its kernels, with the types and sizes of each use.
    #[cfg(test)]
    pub(crate) fn executables(&self) -> impl Iterator<Item = &Executable> {
        self.executables.values()
    }

    /// Returns the objects that the module is linked with.
    #[must_use]
    pub fn objects(&self) -> Vec<Object> {
        let mut objects: Vec<_> = self.executables.values().filter_map(Executable::object).collect();
        objects.sort_by_key(|object| object.name);
        objects.dedup();
        objects
    }

    /// Returns how much its kernels read and write, by the names of their dispatches. Kernels for GPUs are left out: their
    /// dispatches have one name for all sizes.
    #[must_use]
    pub fn traffic(&self) -> BTreeMap<String, Traffic> {
        let named = self.executables.values().filter(|executable| !executable.is_gpu());
        named.map(|executable| (executable.entry(), executable.traffic())).collect()
    }

    /// Adds a public function.
    pub fn add(&mut self, function: Function) {
        self.functions.push(function);
    }

    /// Returns the module as MLIR text.
    ///
    /// # Errors
    /// [`Error::Mlir`] if MLIR refuses it, which no finished graph should cause.
    pub fn to_mlir(&self) -> Result<String, Error> {
        let text = lower::module(&self.name, self.globals.values(), &self.functions)?;
        let executables = kernels::lower::to_mlir(self.executables.values());
        // Executables precede the first op, after the brace that opens the module.
        Ok(text.replacen("{\n", &format!("{{\n{executables}"), 1))
    }
}
