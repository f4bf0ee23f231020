//! A function under construction: ops as a plain value.
//!
//! A [`Graph`] is a list of ops over typed values. It knows no MLIR: `lower.rs` turns a finished one into a
//! `func.func`. Ops are methods, one small file per kind under `ops/`; each checks its operands and computes its
//! result's type.
//!
//! Errors surface once. The first op with wrong operands is remembered with its scope; it and everything computed from
//! it are poisoned tensors, on which ops do nothing. [`Graph::finish`] returns that first error.

use std::collections::BTreeMap;

use safetensors::Dtype;

use crate::{
    Error, TensorType,
    types::{HostType, ValueType},
};

/// A value in a [`Graph`]: a handle, cheap to copy, with no meaning in another graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tensor(u32);

/// A number on the host in a [`Graph`]: what a loop counts, for work that must not wait for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostIndex(pub(crate) Tensor);

/// What an op with wrong operands gives.
const POISON: Tensor = Tensor(u32::MAX);

/// One op in MLIR's generic form.
#[derive(Debug, Clone)]
pub(crate) struct Op {
    pub(crate) name: &'static str,
    pub(crate) operands: Vec<Tensor>,
    /// Attribute names with values in MLIR's syntax.
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) regions: Vec<Region>,
    pub(crate) results: Vec<Tensor>,
    /// Where in the model; becomes the op's location.
    pub(crate) scope: String,
}

/// A region of one block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Region {
    pub(crate) arguments: Vec<Tensor>,
    pub(crate) ops: Vec<Op>,
    pub(crate) results: Vec<Tensor>,
}

/// A function under construction.
#[derive(Debug)]
pub struct Graph {
    types: Vec<ValueType>,
    /// The regions being built, the innermost last; the first is the function's body.
    regions: Vec<Region>,
    scopes: Vec<String>,
    error: Option<Error>,
    /// What [`Self::host_number`] gave.
    pub(crate) host_numbers: BTreeMap<usize, HostIndex>,
}

/// A finished function.
#[derive(Debug)]
pub struct Function {
    pub(crate) name: String,
    pub(crate) body: Region,
    types: Vec<ValueType>,
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// An empty function.
    #[must_use]
    pub fn new() -> Self {
        let (types, scopes, host_numbers) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { types, regions: vec![Region::default()], scopes, error: None, host_numbers }
    }

    /// Adds an argument to the function.
    pub fn argument(&mut self, dtype: Dtype, shape: &[usize]) -> Tensor {
        let argument = self.value(TensorType::new(dtype, shape));
        self.regions[0].arguments.push(argument);
        argument
    }

    /// Adds an argument that is an `i32` on the host.
    pub fn host_argument(&mut self) -> HostIndex {
        let argument = self.value(ValueType::Host(HostType::I32));
        self.regions[0].arguments.push(argument);
        let index = ValueType::Host(HostType::Index);
        HostIndex(self.op_with_regions("arith.index_cast", &[argument], vec![], vec![], vec![index])[0])
    }

    /// Names the part of the model that `body` builds; nested scopes join with dots.
    pub fn scope<T>(&mut self, name: impl Into<String>, body: impl FnOnce(&mut Self) -> T) -> T {
        self.enter(name);
        let result = body(self);
        self.leave();
        result
    }

    pub(crate) fn enter(&mut self, name: impl Into<String>) {
        self.scopes.push(name.into());
    }

    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Ends the function, which returns `results`.
    ///
    /// # Errors
    /// The first op with wrong operands, or a result that is no tensor of this graph.
    pub fn finish(mut self, name: impl Into<String>, results: &[Tensor]) -> Result<Function, Error> {
        if results.iter().any(|&result| self.tensor_type(result).is_none()) {
            self.fail("func.return", "found a result of another graph, expected tensors of this one");
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut body = std::mem::take(&mut self.regions[0]);
        body.results = results.to_vec();
        Ok(Function { name: name.into(), body, types: self.types })
    }

    /// The type of a tensor; of a poisoned one, an `f32` scalar.
    #[must_use]
    pub fn type_of(&self, tensor: Tensor) -> TensorType {
        self.tensor_type(tensor).cloned().unwrap_or(TensorType::new(Dtype::F32, []))
    }

    /// The shape of a tensor.
    #[must_use]
    pub fn shape(&self, tensor: Tensor) -> &[usize] {
        self.tensor_type(tensor).map_or(&[], |ty| &ty.shape)
    }

    /// The element type of a tensor.
    #[must_use]
    pub fn dtype(&self, tensor: Tensor) -> Dtype {
        self.tensor_type(tensor).map_or(Dtype::F32, |ty| ty.dtype)
    }

    fn tensor_type(&self, tensor: Tensor) -> Option<&TensorType> {
        match self.types.get(tensor.index()) {
            Some(ValueType::Tensor(ty)) => Some(ty),
            Some(ValueType::Host(_)) | None => None,
        }
    }

    pub(crate) fn value(&mut self, ty: impl Into<ValueType>) -> Tensor {
        let id = u32::try_from(self.types.len()).unwrap_or(u32::MAX);
        self.types.push(ty.into());
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

    /// Adds an op. Poisoned operands give poisoned results.
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
        let results: Vec<_> = results.into_iter().map(|ty| self.value(ty)).collect();
        let op = Op {
            name,
            operands: operands.to_vec(),
            attributes,
            regions,
            results: results.clone(),
            scope: self.scopes.join("."),
        };
        if let Some(region) = self.regions.last_mut() {
            region.ops.push(op);
        }
        results
    }

    /// Moves the last `count` ops to place `at` of the function's body. They use none that stand between.
    pub(crate) fn move_to_start(&mut self, count: usize, at: usize) {
        let Some(current) = self.regions.last_mut() else { return };
        let moved = current.ops.split_off(current.ops.len().saturating_sub(count));
        if let Some(body) = self.regions.first_mut() {
            body.ops.splice(at..at, moved);
        }
    }

    /// Builds a region whose block takes `arguments` and returns what `body` returns.
    pub(crate) fn region(
        &mut self,
        arguments: &[ValueType],
        body: impl FnOnce(&mut Self, &[Tensor]) -> Vec<Tensor>,
    ) -> Region {
        let arguments: Vec<_> = arguments.iter().map(|ty| self.value(ty.clone())).collect();
        self.regions.push(Region { arguments: arguments.clone(), ..Region::default() });
        let results = body(self, &arguments);
        let mut region = self.regions.pop().unwrap_or_default();
        region.results = results;
        region
    }

    /// Remembers the first error; gives a poisoned tensor.
    pub(crate) fn fail(&mut self, op: &'static str, problem: impl Into<String>) -> Tensor {
        if self.error.is_none() {
            let scope = if self.scopes.is_empty() { "graph".to_owned() } else { self.scopes.join(".") };
            self.error = Some(Error::Op { scope, op, problem: problem.into() });
        }
        POISON
    }

    /// Remembers the first error, which another graph found; gives a poisoned tensor.
    pub(crate) fn fail_with(&mut self, error: Error) -> Tensor {
        self.error.get_or_insert(error);
        POISON
    }

    /// Whether any operand is poisoned: such an op has nothing to check.
    pub(crate) fn poisoned(operands: &[Tensor]) -> bool {
        operands.contains(&POISON)
    }

    pub(crate) const fn poison() -> Tensor {
        POISON
    }
}

impl Function {
    pub(crate) fn type_of(&self, tensor: Tensor) -> &ValueType {
        &self.types[tensor.index()]
    }

    pub(crate) fn values(&self) -> usize {
        self.types.len()
    }
}

impl Tensor {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_surfaces_once_with_its_scope() {
        let mut g = Graph::new();
        let (two, three) = (g.argument(Dtype::F32, &[2]), g.argument(Dtype::F32, &[3]));
        let sum = g.scope("layer.3", |g| g.scope("attention", |g| g.scope("q_proj", |g| g.add(two, three))));
        let after = g.scope("mlp", |g| g.multiply(sum, two));
        g.scope("head", |g| g.not(two));
        assert_eq!(
            g.finish("f", &[after]).unwrap_err().to_string(),
            "layer.3.attention.q_proj: stablehlo.add: found tensor<2xf32> and tensor<3xf32>, expected two of one type"
        );
    }

    #[test]
    fn scopes_end() {
        let mut g = Graph::new();
        let x = g.scope("layer.0", |g| g.argument(Dtype::F32, &[2]));
        g.not(x);
        assert_eq!(
            g.finish("f", &[]).unwrap_err().to_string(),
            "graph: stablehlo.not: found tensor<2xf32>, expected an integer or boolean type"
        );
    }

    #[test]
    fn what_follows_from_an_error_adds_no_ops() {
        let mut g = Graph::new();
        let x = g.argument(Dtype::F32, &[2]);
        let poisoned = g.not(x);
        assert_eq!(poisoned, POISON);
        assert_eq!(g.type_of(poisoned), TensorType::new(Dtype::F32, []));
        assert_eq!(g.add(x, poisoned), POISON);
        assert_eq!(g.if_else(poisoned, |_| vec![x, x], |_| vec![x, x]), [POISON; 2]);
        assert_eq!(g.sort(&[x, poisoned], 0, true, |g, values| g.lt(values[0], values[1])), [POISON; 2]);
        assert!(g.regions[0].ops.is_empty());
    }

    #[test]
    fn an_error_in_a_region_poisons_the_op_around_it() {
        let mut g = Graph::new();
        let x = g.argument(Dtype::F32, &[2]);
        let end = g.host_argument();
        let state = g.scope("loop", |g| g.for_loop(end, 1, &[x], |g, _, state| vec![g.not(state[0])]));
        assert_eq!(state, [POISON]);
        assert_eq!(
            g.finish("f", &state).unwrap_err().to_string(),
            "loop: stablehlo.not: found tensor<2xf32>, expected an integer or boolean type"
        );
    }
}
