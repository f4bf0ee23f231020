//! A module: globals and functions, and its text.

use std::collections::BTreeMap;

use mlxcel_artifacts::Traffic;

use crate::{
    Error, Graph, HostIndex, Tensor, TensorType,
    graph::Function,
    kernels::{Executable, Object},
    lower,
};

/// A variable of a module, shared by its functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    pub(crate) symbol: String,
    pub(crate) ty: TensorType,
    pub(crate) init: Init,
}

/// What a global holds when the module is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Init {
    /// A parameter that the runtime provides. Never changes.
    Parameter { scope: String, key: String },
    /// Zeros. Functions change it.
    Zeros,
}

/// A module under construction.
#[derive(Debug)]
pub struct Module {
    name: String,
    globals: BTreeMap<String, Global>,
    /// By symbol.
    executables: BTreeMap<String, Executable>,
    functions: Vec<Function>,
}

impl Module {
    /// An empty module.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            globals: BTreeMap::new(),
            executables: BTreeMap::new(),
            functions: Vec::new(),
        }
    }

    /// The global that holds the parameter `scope::key`, made on first use.
    pub fn parameter(&mut self, scope: &str, key: &str, ty: TensorType) -> Global {
        let init = Init::Parameter { scope: scope.to_owned(), key: key.to_owned() };
        self.global(Global { symbol: key.to_owned(), ty, init })
    }

    /// The mutable global `name`, zero at first, made on first use.
    pub fn state(&mut self, name: &str, ty: TensorType) -> Global {
        self.global(Global { symbol: name.to_owned(), ty, init: Init::Zeros })
    }

    fn global(&mut self, global: Global) -> Global {
        self.globals.entry(global.symbol.clone()).or_insert(global).clone()
    }

    /// Runs `executable` in `graph`, a function of this module.
    pub(crate) fn call(
        &mut self,
        graph: &mut Graph,
        executable: Executable,
        operands: &[Tensor],
        numbers: &[HostIndex],
    ) -> Vec<Tensor> {
        let results = graph.dispatch(&executable, operands, numbers);
        self.executables.entry(executable.symbol()).or_insert(executable);
        results
    }

    /// The objects that the module is to be linked with.
    #[must_use]
    pub fn objects(&self) -> Vec<Object> {
        let mut objects: Vec<_> = self.executables.values().filter_map(Executable::object).collect();
        objects.sort_by_key(|object| object.name);
        objects.dedup();
        objects
    }

    /// What its executables read and write, by the names of their dispatches. Of GPUs there is none: executables that differ
    /// in sizes alone have dispatches of one name.
    #[must_use]
    pub fn traffic(&self) -> BTreeMap<String, Traffic> {
        let named = self.executables.values().filter(|executable| !executable.isa.is_gpu());
        named.map(|executable| (executable.entry(), executable.traffic())).collect()
    }

    /// Adds a public function.
    pub fn add(&mut self, function: Function) {
        self.functions.push(function);
    }

    /// The module as MLIR text.
    ///
    /// # Errors
    /// [`Error::Mlir`] when MLIR refuses it, which no graph should bring about.
    pub fn to_mlir(&self) -> Result<String, Error> {
        let text = lower::module(&self.name, self.globals.values(), &self.functions)?;
        let executables: String = self.executables.values().map(Executable::to_mlir).collect();
        // Before the first op: after the brace that opens the module.
        Ok(text.replacen("{\n", &format!("{{\n{executables}"), 1))
    }
}
