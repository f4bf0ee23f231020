//! Modules: globals, kernels and functions, and their text.

use std::collections::{BTreeMap, BTreeSet};

use mlxcel_artifacts::Traffic;

use crate::{
    cost::Calls,
    error::Error,
    global::{Global, Init},
    graph::{Function, Graph, Op, Tensor},
    kernels::{self, Call, Chain, Executable, Grid, Isa, Kernel, Object},
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
    chains: Vec<Chain>,
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
            chains: Vec::new(),
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
        self.global(Global { symbol: name.to_owned(), ty, init: Init::Splat(0) })
    }

    /// Returns the mutable global `name`, and declares it on first use. Its initial value is `number` everywhere.
    ///
    /// iree-compile 3.13 takes globals of one type and value that one op's results are stored in for one.
    pub(crate) fn scratch(&mut self, name: &str, ty: TensorType, number: usize) -> Global {
        self.global(Global { symbol: name.to_owned(), ty, init: Init::Splat(number) })
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

    /// Returns the functions in their order.
    #[cfg(test)]
    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Adds kernels that functions call.
    pub(crate) fn add_executables(&mut self, executables: Vec<Executable>) {
        for executable in executables {
            self.executables.entry(executable.symbol()).or_insert(executable);
        }
    }

    /// Returns its kernels, with the types and sizes of each use.
    pub(crate) fn executables(&self) -> impl Iterator<Item = &Executable> {
        self.executables.values()
    }

    /// Returns the kernel with this symbol.
    pub(crate) fn executable(&self, symbol: &str) -> Option<&Executable> {
        self.executables.get(symbol)
    }

    /// Returns the index of a chain, which is added if it is new.
    pub(crate) fn add_chain(&mut self, chain: Chain) -> usize {
        self.chains.iter().position(|known| *known == chain).unwrap_or_else(|| {
            self.chains.push(chain);
            self.chains.len() - 1
        })
    }

    /// Returns the kernels that have dispatches of their own, by symbol.
    fn dispatched(&self) -> impl Iterator<Item = &Executable> {
        let mut symbols = BTreeSet::new();
        for function in &self.functions {
            each_op(&function.body.ops, &mut |op| symbols.extend(op.kernel.as_deref()));
        }
        symbols.into_iter().filter_map(|symbol| self.executables.get(symbol))
    }

    /// Returns the objects that the module is linked with.
    #[must_use]
    pub fn objects(&self) -> Vec<Object> {
        let own = self.dispatched().flat_map(Executable::objects);
        let mut objects: Vec<_> = own.chain(self.chains.iter().flat_map(Chain::objects)).collect();
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        objects.dedup();
        objects
    }

    /// Returns how much its kernels read and write, by the names of their dispatches. Those of a GPU have one name for all sizes,
    /// so that it follows that of the function, `step_1.cuda_argmax`, and the traffic is that of a call of the function, on average.
    #[must_use]
    pub fn traffic(&self) -> BTreeMap<String, Traffic> {
        let named = self.dispatched().filter(|executable| !executable.is_gpu());
        let own = named.map(|executable| (executable.entry(), executable.traffic()));
        let chains = self.chains.iter().enumerate();
        let chains = chains.map(|(index, chain)| (Chain::entry(index), chain.traffic()));
        let of_gpus = self.functions.iter().flat_map(|function| {
            let calls = self.gpu_calls(function).into_iter();
            calls.map(|(kernel, calls)| (format!("{}.{kernel}", function.name), calls.mean_traffic()))
        });
        own.chain(chains).chain(of_gpus).collect()
    }

    /// Returns the calls of kernels for GPUs in a function, by the names of their dispatches.
    pub(crate) fn gpu_calls(&self, function: &Function) -> BTreeMap<String, Calls> {
        let mut found: BTreeMap<String, Calls> = BTreeMap::new();
        let mut add = |op: &Op| {
            let executable = op.kernel.as_deref().and_then(|symbol| self.executables.get(symbol));
            if let Some(executable) = executable.filter(|executable| executable.is_gpu()) {
                found.entry(executable.entry()).or_default().add(op.cost);
            }
        };
        each_op(&function.body.ops, &mut add);
        found
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
        let executables = kernels::lower::to_mlir(self.dispatched(), &self.chains);
        // Executables precede the first op, after the brace that opens the module.
        Ok(text.replacen("{\n", &format!("{{\n{executables}"), 1))
    }
}

/// Passes on every op, those in regions included.
fn each_op<'o>(ops: &'o [Op], found: &mut impl FnMut(&'o Op)) {
    for op in ops {
        found(op);
        for region in &op.regions {
            each_op(&region.ops, found);
        }
    }
}
