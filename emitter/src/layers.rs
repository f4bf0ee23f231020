//! The parts of a decoder as mathematics over [`Graph`]: one of each, for every family.

pub(crate) mod attention;
mod bits;
pub(crate) mod cache;
pub(crate) mod linear;
pub(crate) mod mlp;
pub(crate) mod norm;
pub(crate) mod rope;

use std::collections::BTreeMap;

use mlxcel_artifacts::signature::PARAMETER_SCOPE;
use mlxcel_models::Weight;
use safetensors::Dtype;

use crate::{Global, Graph, Module, Numerics, Plan, Products, Tensor, TensorType};

/// What layers build into: the function, the module's globals and what is known of the weights.
pub(crate) struct Builder<'a> {
    pub(crate) graph: Graph,
    pub(crate) module: &'a mut Module,
    dtype_of: &'a dyn Fn(&str) -> Dtype,
    /// What the cache holds.
    pub(crate) precision: Dtype,
    pub(crate) numerics: Numerics,
    loaded: BTreeMap<String, Tensor>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(module: &'a mut Module, dtype_of: &'a dyn Fn(&str) -> Dtype, plan: &Plan) -> Self {
        let Plan { precision, numerics, .. } = *plan;
        Self { graph: Graph::new(), module, dtype_of, precision, numerics, loaded: BTreeMap::new() }
    }

    /// What operands of a matrix product are converted to.
    pub(crate) fn operand(&self) -> Dtype {
        match self.numerics.products {
            Products::Native => self.precision,
            Products::Widened | Products::Packed { .. } => Dtype::F32,
        }
    }

    /// A weight in the checkpoint's type; its bits as `i16` where the target cannot load that.
    pub(crate) fn stored(&mut self, weight: &Weight) -> Tensor {
        let global = self.parameter(weight);
        self.load(&global)
    }

    /// What `body` makes of a weight as [`Self::stored`] gives it, of the same element type, once, when the module is
    /// loaded.
    pub(crate) fn computed(
        &mut self,
        weight: &Weight,
        what: &str,
        shape: &[usize],
        body: impl FnOnce(&mut Graph, Tensor) -> Tensor,
    ) -> Tensor {
        let stored = self.parameter(weight);
        let ty = TensorType::new(stored.ty.dtype, shape);
        let computed = self.module.computed(&format!("{}.{what}", weight.name), ty, |g| {
            let stored = g.load(&stored);
            body(g, stored)
        });
        match computed {
            Ok(global) => self.load(&global),
            Err(error) => self.graph.fail_with(error),
        }
    }

    fn parameter(&mut self, weight: &Weight) -> Global {
        let dtype = match (self.dtype_of)(&weight.name) {
            Dtype::BF16 | Dtype::F16 if self.numerics.floats_as_bits => Dtype::I16,
            dtype => dtype,
        };
        self.module.parameter(PARAMETER_SCOPE, &weight.name, TensorType::new(dtype, weight.shape.as_slice()))
    }

    fn load(&mut self, global: &Global) -> Tensor {
        let graph = &mut self.graph;
        *self.loaded.entry(global.symbol.clone()).or_insert_with(|| graph.load(global))
    }

    /// `x`, elements of a weight as [`Self::stored`] gives them, as `dtype`.
    pub(crate) fn widen(&mut self, weight: &Weight, x: Tensor, dtype: Dtype) -> Tensor {
        let g = &mut self.graph;
        let x = match ((self.dtype_of)(&weight.name), g.dtype(x)) {
            (Dtype::BF16, Dtype::I16) => bits::bf16(g, x),
            (Dtype::F16, Dtype::I16) => bits::f16(g, x),
            _ => x,
        };
        g.convert(x, dtype)
    }

    /// A weight in `f32`.
    pub(crate) fn weight_f32(&mut self, weight: &Weight) -> Tensor {
        let tensor = self.stored(weight);
        self.widen(weight, tensor, Dtype::F32)
    }

    /// Names the part of the model that `body` builds.
    pub(crate) fn scope<T>(&mut self, name: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        self.graph.enter(name);
        let result = body(self);
        self.graph.leave();
        result
    }
}
