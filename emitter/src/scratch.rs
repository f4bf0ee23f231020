//! Memory for what passes between kernels of a GPU.
//!
//! A call whose results all have a place of their own before it begins allocates nothing, and iree-compile records its
//! dispatches once, when the module is loaded. Results that leave the function go to arguments, the others to variables of
//! the module, which are used again as soon as nothing reads what is in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    global::Global,
    graph::{Graph, Op, Tensor},
    module::Module,
    ops::{overwritten_operands, set_places},
    types::TensorType,
};

/// Gives the results of kernels in a function's body places. `places` are those of results that leave the function: the
/// result and the argument that it is written to, of the same type.
///
/// If kernels compute everything, or with `variables`, all other results of kernels have places in the module. Otherwise they are
/// allocated in every call, as what generated code makes is.
pub(crate) fn place(module: &mut Module, graph: &mut Graph, places: &[(Tensor, Tensor)], variables: bool) {
    if graph.has_failed() {
        return;
    }
    let ops = graph.take_ops();
    let has_variables = variables || !ops.iter().any(is_generated);
    let mut placer = Placer::new(module, &ops, places, has_variables);
    for (index, op) in ops.into_iter().enumerate() {
        placer.add(graph, index, op);
    }
    placer.store(graph);
}

/// Returns whether an op becomes generated code, which has memory of its own.
pub(crate) fn is_generated(op: &Op) -> bool {
    const WITHOUT_CODE: [&str; 6] = [
        "arith.constant",
        "arith.index_cast",
        "stablehlo.constant",
        "stablehlo.reshape",
        "util.global.load",
        "util.global.store",
    ];
    op.kernel.is_none() && !WITHOUT_CODE.contains(&&*op.name)
}

/// Gives places to the results of one kernel after the other.
struct Placer<'m> {
    module: &'m mut Module,
    has_variables: bool,
    /// The argument that a result is written to.
    arguments: HashMap<Tensor, Tensor>,
    /// The values that are not used after an op, by its index.
    ends: HashMap<usize, Vec<Tensor>>,
    /// The variable that has a value.
    variables: HashMap<Tensor, Global>,
    /// Values that nothing reads any more, in variables of a type.
    free: BTreeMap<String, Vec<Tensor>>,
    /// How many variables of a type there are.
    counts: BTreeMap<String, usize>,
}

impl<'m> Placer<'m> {
    fn new(module: &'m mut Module, ops: &[Op], places: &[(Tensor, Tensor)], has_variables: bool) -> Self {
        // The results of reshapes are where their operands are.
        let sources: HashMap<_, _> = ops
            .iter()
            .filter(|op| op.name == "stablehlo.reshape")
            .map(|op| (op.results[0], op.operands[0]))
            .collect();
        let source = |mut value: Tensor| {
            while let Some(&from) = sources.get(&value) {
                value = from;
            }
            value
        };
        let mut last = HashMap::new();
        for (index, op) in ops.iter().enumerate() {
            let mut used = HashSet::new();
            op.collect_operands(&mut used);
            last.extend(used.into_iter().map(|value| (source(value), index)));
        }
        let mut ends: HashMap<usize, Vec<Tensor>> = HashMap::new();
        for (index, op) in ops.iter().enumerate() {
            for &result in &op.results {
                // Nothing reads the memory that a kernel has for itself.
                let end = last.get(&result).copied().unwrap_or(index);
                ends.entry(end).or_default().push(result);
            }
        }
        let arguments = places.iter().map(|&(result, argument)| (source(result), argument)).collect();
        Self {
            module,
            has_variables,
            arguments,
            ends,
            variables: HashMap::new(),
            free: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Adds the next op of the body, with places for the results of a kernel.
    fn add(&mut self, graph: &mut Graph, index: usize, mut op: Op) {
        let executable = op.kernel.as_deref().and_then(|symbol| self.module.executable(symbol)).cloned();
        let is_placed =
            |op: &Op| self.has_variables || op.results.iter().any(|r| self.arguments.contains_key(r));
        if let Some(executable) = executable.filter(|executable| executable.is_gpu() && is_placed(&op)) {
            let made = op.results.len() - executable.overwritten().len();
            let places: Vec<_> =
                op.results[..made].iter().map(|&result| self.place_of(graph, result)).collect();
            // What the kernel overwrites stays where it is.
            for (before, &after) in overwritten_operands(&op, &executable).iter().zip(&op.results[made..]) {
                if let Some(variable) = self.variables.remove(before) {
                    self.variables.insert(after, variable);
                }
            }
            set_places(&mut op, &executable, &places);
        }
        graph.put_op(op);
        let ended = self.ends.remove(&index).unwrap_or_default();
        for value in ended {
            if self.variables.contains_key(&value) {
                self.free.entry(graph.type_of(value).to_string()).or_default().push(value);
            }
        }
    }

    /// Returns a value that a kernel can overwrite with `result`.
    fn place_of(&mut self, graph: &mut Graph, result: Tensor) -> Tensor {
        let ty = graph.type_of(result);
        if let Some(argument) = self.arguments.get(&result).copied() {
            return graph.reshape(argument, &ty.shape);
        }
        let key = ty.to_string();
        let place = self.free.get_mut(&key).and_then(Vec::pop);
        let place = place.unwrap_or_else(|| self.new_variable(graph, &ty));
        if let Some(variable) = self.variables.remove(&place) {
            self.variables.insert(result, variable);
        }
        place
    }

    /// Loads a variable that the function does not use yet.
    fn new_variable(&mut self, graph: &mut Graph, ty: &TensorType) -> Tensor {
        let count = self.counts.entry(ty.to_string()).or_default();
        let shape: Vec<_> = ty.shape.iter().map(ToString::to_string).collect();
        let name = format!("scratch_{}_{:?}_{count}", shape.join("x"), ty.dtype).to_lowercase();
        *count += 1;
        let variable = self.module.scratch(&name, ty.clone(), *count);
        let loaded = graph.load(&variable);
        self.variables.insert(loaded, variable);
        loaded
    }

    /// Stores the last value of each variable.
    fn store(self, graph: &mut Graph) {
        let mut last: Vec<_> = self.variables.into_iter().collect();
        last.sort_by(|(_, a), (_, b)| a.symbol.cmp(&b.symbol));
        for (value, variable) in last {
            graph.store(&variable, value);
        }
    }
}
