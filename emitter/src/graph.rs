//! Functions under construction, as plain values.
//!
//! A [`Graph`] is a list of ops over typed values. It knows no MLIR: `lower.rs` turns a finished one into a `func.func`. Ops
//! are methods in `ops/`, one file for each kind. An op checks its operands and computes the type of its result.
//!
//! Errors surface once. A graph keeps the first op with wrong operands, and its scope. The result of that op is poisoned, and
//! so is everything computed from it. [`Graph::finish`] returns the error.

mod arguments;
mod carried;
mod in_place;
mod views;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use safetensors::Dtype;

use crate::{
    cost::Cost,
    error::Error,
    types::{TensorType, ValueType},
};

/// A value in a [`Graph`]: a handle that is cheap to copy and has no meaning in another graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tensor(u32);

/// A number on the host in a [`Graph`], such as a loop counter. Using it does not wait for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostIndex(pub(crate) Tensor);

/// The result of an op with wrong operands.
const POISON: Tensor = Tensor(u32::MAX);

/// One op in MLIR's generic form.
#[derive(Debug, Clone)]
pub(crate) struct Op {
    pub(crate) name: Cow<'static, str>,
    pub(crate) operands: Vec<Tensor>,
    /// Names of attributes, and their values in MLIR's syntax.
    pub(crate) attributes: Vec<(Cow<'static, str>, String)>,
    pub(crate) regions: Vec<Region>,
    pub(crate) results: Vec<Tensor>,
    /// The part of the model, which becomes the op's location.
    pub(crate) scope: String,
    /// The symbol of the kernel that it calls.
    pub(crate) kernel: Option<String>,
    /// What a call of the kernel takes, if it is one for GPUs.
    pub(crate) cost: Cost,
}

impl Op {
    /// Adds the values that it takes, those of its regions included.
    pub(crate) fn collect_operands(&self, operands: &mut HashSet<Tensor>) {
        operands.extend(&self.operands);
        for region in &self.regions {
            operands.extend(&region.results);
            region.ops.iter().for_each(|op| op.collect_operands(operands));
        }
    }
}

/// A region of one block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Region {
    pub(crate) arguments: Vec<Tensor>,
    pub(crate) ops: Vec<Op>,
    pub(crate) results: Vec<Tensor>,
}

/// What callers know of a function's arguments and results besides their types.
#[derive(Debug, Default)]
pub(crate) struct Signature {
    /// The names of arguments.
    pub(crate) argument_names: BTreeMap<Tensor, String>,
    /// The names of all results, or none.
    pub(crate) result_names: Vec<String>,
    /// The results that take the places of arguments.
    pub(crate) replaced: BTreeMap<Tensor, Tensor>,
}

/// A function under construction.
#[derive(Debug)]
pub struct Graph {
    types: Vec<ValueType>,
    /// The regions under construction, the innermost last. The first is the function's body.
    regions: Vec<Region>,
    scopes: Vec<String>,
    error: Option<Error>,
    /// The results of [`Self::host_number`], by value.
    pub(crate) host_numbers: BTreeMap<usize, HostIndex>,
    /// Attributes of arguments, by the arguments' indices.
    pub(crate) argument_attributes: BTreeMap<usize, String>,
    pub(crate) signature: Signature,
    /// The first dimensions of tensors that have a dynamic one, by the tensor's index.
    extents: BTreeMap<usize, HostIndex>,
    /// Tensors that are columns of another one, by [`Self::slice_dimension`], with their first column.
    pub(crate) columns: HashMap<Tensor, (Tensor, usize)>,
    /// How many regions were under construction when each value was added.
    depths: Vec<usize>,
    /// Values that the function must not write to, if it is to keep from that.
    borrowed: Option<HashSet<Tensor>>,
    /// Values that are computed from borrowed ones by ops that others undo, with bits for their kinds.
    derived: HashMap<Tensor, u8>,
    /// Values that loops carry, if they are carried in place.
    carried: Option<HashSet<Tensor>>,
    /// Values that are computed so from carried ones.
    derived_from_carried: HashMap<Tensor, u8>,
    /// Constants, and whether each can be one that changes nothing, if there are borrowed values.
    constants: HashMap<Tensor, bool>,
    /// How many tensors loops carry in place.
    in_place: usize,
    /// Copies of what loops carry, and what they are copies of.
    copies: HashMap<Tensor, Tensor>,
}

/// A finished function.
#[derive(Debug)]
pub struct Function {
    pub(crate) name: String,
    pub(crate) body: Region,
    /// Attributes of arguments, by the arguments' indices.
    pub(crate) argument_attributes: BTreeMap<usize, String>,
    pub(crate) signature: Signature,
    types: Vec<ValueType>,
}

impl Function {
    /// Returns all but the name, so that functions that do the same can share one.
    pub(crate) fn without_name(&self) -> String {
        let Self { name: _, body, argument_attributes, signature, types } = self;
        format!("{body:?} {argument_attributes:?} {signature:?} {types:?}")
    }
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// Creates an empty function.
    #[must_use]
    pub fn new() -> Self {
        Self {
            types: Vec::new(),
            regions: vec![Region::default()],
            scopes: Vec::new(),
            error: None,
            host_numbers: BTreeMap::new(),
            argument_attributes: BTreeMap::new(),
            signature: Signature::default(),
            extents: BTreeMap::new(),
            columns: HashMap::new(),
            depths: Vec::new(),
            borrowed: None,
            derived: HashMap::new(),
            carried: None,
            derived_from_carried: HashMap::new(),
            constants: HashMap::new(),
            in_place: 0,
            copies: HashMap::new(),
        }
    }

    /// Names the part of the model that `body` builds; nested scopes join with dots.
    pub fn scope<T>(&mut self, name: impl Into<String>, body: impl FnOnce(&mut Self) -> T) -> T {
        self.enter(name);
        let result = body(self);
        self.leave();
        result
    }

    /// Begins a scope.
    pub(crate) fn enter(&mut self, name: impl Into<String>) {
        self.scopes.push(name.into());
    }

    /// Ends the innermost scope.
    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Finishes the function, which returns `results`.
    ///
    /// # Errors
    /// The first op with wrong operands, or a result that is not a tensor of this graph.
    pub fn finish(mut self, name: impl Into<String>, results: &[Tensor]) -> Result<Function, Error> {
        if results.iter().any(|&result| self.tensor_type(result).is_none()) {
            self.fail("func.return", "found a result of another graph, expected tensors of this one");
        }
        self.mark_replacements(results);
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut body = std::mem::take(&mut self.regions[0]);
        body.results = results.to_vec();
        Ok(Function {
            name: name.into(),
            body,
            argument_attributes: self.argument_attributes,
            signature: self.signature,
            types: self.types,
        })
    }

    /// Returns the type of a tensor. A poisoned tensor has the type of an `f32` scalar.
    #[must_use]
    pub fn type_of(&self, tensor: Tensor) -> TensorType {
        self.tensor_type(tensor).cloned().unwrap_or(TensorType::new(Dtype::F32, []))
    }

    /// Returns the shape of a tensor.
    #[must_use]
    pub fn shape(&self, tensor: Tensor) -> &[usize] {
        self.tensor_type(tensor).map_or(&[], |ty| &ty.shape)
    }

    /// Returns the element type of a tensor.
    #[must_use]
    pub fn dtype(&self, tensor: Tensor) -> Dtype {
        self.tensor_type(tensor).map_or(Dtype::F32, |ty| ty.dtype)
    }

    /// Returns the tensor that `x` is a range of columns of, elements of the last dimension, and the first column. A kernel that
    /// reads the columns in place needs no copy of them.
    pub(crate) fn columns_of(&self, x: Tensor) -> (Tensor, usize) {
        self.columns.get(&x).copied().unwrap_or((x, 0))
    }

    fn tensor_type(&self, tensor: Tensor) -> Option<&TensorType> {
        match self.types.get(tensor.index()) {
            Some(ValueType::Tensor(ty)) => Some(ty),
            Some(ValueType::Host(_)) | None => None,
        }
    }

    /// Adds a value of a type.
    pub(crate) fn value(&mut self, ty: impl Into<ValueType>) -> Tensor {
        let id = u32::try_from(self.types.len()).unwrap_or(u32::MAX);
        self.types.push(ty.into());
        self.depths.push(self.regions.len());
        Tensor(id)
    }

    /// Adds an op with one result.
    pub(crate) fn op(
        &mut self,
        name: &'static str,
        operands: &[Tensor],
        attributes: Vec<(&'static str, String)>,
        result: TensorType,
    ) -> Tensor {
        self.op_with_regions(name, operands, attributes, Vec::new(), vec![result.into()])[0]
    }

    /// Adds an op with any number of results. If an operand is poisoned, the results are poisoned.
    pub(crate) fn op_with_regions(
        &mut self,
        name: &'static str,
        operands: &[Tensor],
        attributes: Vec<(&'static str, String)>,
        regions: Vec<Region>,
        results: Vec<ValueType>,
    ) -> Vec<Tensor> {
        let poisoned =
            operands.iter().chain(regions.iter().flat_map(|r| &r.results)).any(|&operand| operand == POISON);
        if poisoned {
            return vec![POISON; results.len()];
        }
        let attributes = attributes.into_iter().map(|(name, value)| (name.into(), value)).collect();
        self.raw(name.into(), operands, attributes, regions, results)
    }

    /// Adds an op without checking it, such as one that somebody else's program has.
    pub(crate) fn raw(
        &mut self,
        name: Cow<'static, str>,
        operands: &[Tensor],
        attributes: Vec<(Cow<'static, str>, String)>,
        mut regions: Vec<Region>,
        results: Vec<ValueType>,
    ) -> Vec<Tensor> {
        let mut operands = self.owned_operands(&name, operands);
        let results: Vec<_> = results.into_iter().map(|ty| self.value(ty)).collect();
        if self.carried.is_some() && name == "stablehlo.while" {
            self.carry_in_place(&mut operands, &mut regions, &results);
        }
        let op = Op {
            name,
            operands,
            attributes,
            regions,
            results: results.clone(),
            scope: self.scopes.join("."),
            kernel: None,
            cost: Cost::default(),
        };
        self.note_views(&op);
        self.push(op);
        results
    }

    /// Returns the op that computes a value, if it is one of the latest.
    pub(crate) fn producer(&self, value: Tensor) -> Option<&Op> {
        const LATEST: usize = 64;
        let latest = self.regions.iter().rev().flat_map(|region| region.ops.iter().rev().take(LATEST));
        latest.into_iter().find(|op| op.results.contains(&value))
    }

    /// Returns whether a value is the result of a kernel, in its shape or another.
    pub(crate) fn is_made_by_kernel(&self, value: Tensor) -> bool {
        match self.producer(value) {
            Some(op) if op.name == "stablehlo.reshape" => self.is_made_by_kernel(op.operands[0]),
            Some(op) => op.kernel.is_some(),
            None => false,
        }
    }

    /// Notes that the last op calls the kernel with this symbol, and what that takes.
    pub(crate) fn set_kernel(&mut self, symbol: String, cost: Cost) {
        if let Some(op) = self.regions.last_mut().and_then(|region| region.ops.last_mut()) {
            (op.kernel, op.cost) = (Some(symbol), cost);
        }
    }

    /// Drops the ops of the function's body that `results` do not depend on.
    pub(crate) fn keep_only(&mut self, results: &[Tensor]) {
        let mut needed: HashSet<Tensor> = results.iter().copied().collect();
        let mut kept: Vec<Op> = Vec::new();
        for op in self.take_ops().into_iter().rev() {
            if op.results.iter().any(|result| needed.contains(result)) {
                op.collect_operands(&mut needed);
                kept.push(op);
            }
        }
        kept.into_iter().rev().for_each(|op| self.put_op(op));
    }

    /// Returns the regions under construction, the innermost last.
    pub(crate) fn open_regions(&self) -> &[Region] {
        &self.regions
    }

    /// Adds an op as it is, whose operands and results are values of this graph.
    pub(crate) fn push(&mut self, op: Op) {
        if let Some(region) = self.regions.last_mut() {
            region.ops.push(op);
        }
    }

    /// Adds a value of the type of another one.
    pub(crate) fn value_like(&mut self, value: Tensor) -> Tensor {
        match self.types.get(value.index()) {
            Some(ty) => self.value(ty.clone()),
            None => POISON,
        }
    }

    /// Adds the ops of `body` in the scope of another op.
    pub(crate) fn in_scope_of<T>(&mut self, op: &Op, body: impl FnOnce(&mut Self) -> T) -> T {
        let scopes = if op.scope.is_empty() { vec![] } else { vec![op.scope.clone()] };
        let outer = std::mem::replace(&mut self.scopes, scopes);
        let result = body(self);
        self.scopes = outer;
        result
    }

    /// Takes the ops of the function's body, in order.
    pub(crate) fn take_ops(&mut self) -> Vec<Op> {
        self.regions.first_mut().map(|body| std::mem::take(&mut body.ops)).unwrap_or_default()
    }

    /// Adds an op to the function's body that was in it.
    pub(crate) fn put_op(&mut self, op: Op) {
        if let Some(body) = self.regions.first_mut() {
            body.ops.push(op);
        }
    }

    /// Returns whether an op had wrong operands.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Moves the last `count` ops to index `at` of the function's body. They must not use the ops between.
    pub(crate) fn move_to_start(&mut self, count: usize, at: usize) {
        let Some(current) = self.regions.last_mut() else { return };
        let moved = current.ops.split_off(current.ops.len().saturating_sub(count));
        if let Some(body) = self.regions.first_mut() {
            body.ops.splice(at..at, moved);
        }
    }

    /// Builds a region whose block takes `arguments` and returns the results of `body`.
    pub(crate) fn region(
        &mut self,
        arguments: &[ValueType],
        body: impl FnOnce(&mut Self, &[Tensor]) -> Vec<Tensor>,
    ) -> Region {
        let arguments = self.begin_region(arguments);
        let results = body(self, &arguments);
        self.end_region(results)
    }

    /// Begins a region whose block takes arguments of these types, and returns them. Ops are added to it until
    /// [`Self::end_region`].
    pub(crate) fn begin_region(&mut self, arguments: &[ValueType]) -> Vec<Tensor> {
        self.regions.push(Region::default());
        let arguments: Vec<_> = arguments.iter().map(|ty| self.value(ty.clone())).collect();
        if let Some(region) = self.regions.last_mut() {
            region.arguments.clone_from(&arguments);
        }
        self.note_carried(&arguments);
        arguments
    }

    /// Ends the innermost region, which returns `results`.
    pub(crate) fn end_region(&mut self, results: Vec<Tensor>) -> Region {
        let mut region = self.regions.pop().unwrap_or_default();
        region.results = results;
        region
    }

    /// Keeps the error if it is the first, and returns a poisoned tensor.
    pub(crate) fn fail(&mut self, op: &'static str, problem: impl Into<String>) -> Tensor {
        if self.error.is_none() {
            let scope = if self.scopes.is_empty() { "graph".to_owned() } else { self.scopes.join(".") };
            self.error = Some(Error::Op { scope, op, problem: problem.into() });
        }
        POISON
    }

    /// Keeps an error of another graph if it is the first, and returns a poisoned tensor.
    pub(crate) fn fail_with(&mut self, error: Error) -> Tensor {
        self.error.get_or_insert(error);
        POISON
    }

    /// Returns whether any operand is poisoned. Such an op has nothing to check.
    pub(crate) fn poisoned(operands: &[Tensor]) -> bool {
        operands.contains(&POISON)
    }

    /// Returns a poisoned tensor.
    pub(crate) const fn poison() -> Tensor {
        POISON
    }
}

impl Function {
    /// Returns the type of a value.
    pub(crate) fn type_of(&self, tensor: Tensor) -> &ValueType {
        &self.types[tensor.index()]
    }

    /// Returns the number of values.
    pub(crate) fn value_count(&self) -> usize {
        self.types.len()
    }
}

impl Tensor {
    /// Returns the index of the value in its graph.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests;
