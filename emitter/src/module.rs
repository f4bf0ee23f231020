//! A module: globals and functions, and its text.

use std::collections::BTreeMap;

use crate::{Error, Graph, Tensor, TensorType, graph::Function, lower};

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
    /// What one of the module's initializers computes. Never changes.
    Computed,
}

/// A module under construction.
#[derive(Debug)]
pub struct Module {
    name: String,
    globals: BTreeMap<String, Global>,
    initializers: Vec<Function>,
    functions: Vec<Function>,
}

impl Module {
    /// An empty module.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), globals: BTreeMap::new(), initializers: Vec::new(), functions: Vec::new() }
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

    /// The global `name` that holds what `body` computes from other globals when the module is loaded, made on first use.
    ///
    /// # Errors
    /// The first op of `body` with wrong operands.
    pub fn computed(
        &mut self,
        name: &str,
        ty: TensorType,
        body: impl FnOnce(&mut Graph) -> Tensor,
    ) -> Result<Global, Error> {
        let global = Global { symbol: name.to_owned(), ty, init: Init::Computed };
        if !self.globals.contains_key(name) {
            let mut graph = Graph::new();
            let value = graph.scope(name, body);
            graph.store(&global, value);
            self.initializers.push(graph.finish(name, &[])?);
        }
        Ok(self.global(global))
    }

    fn global(&mut self, global: Global) -> Global {
        self.globals.entry(global.symbol.clone()).or_insert(global).clone()
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
        lower::module(&self.name, self.globals.values(), &self.initializers, &self.functions)
    }
}
