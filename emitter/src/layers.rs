//! The parts of a transformer as mathematics over [`Graph`]: one of each, for every family.

pub(crate) mod attention;
mod bits;
pub(crate) mod cache;
pub(crate) mod experts;
pub(crate) mod linear;
mod matvec;
pub(crate) mod mlp;
pub(crate) mod norm;
mod panels;
pub(crate) mod pooling;
mod quantized;
pub(crate) mod rope;
mod weights;

use std::collections::BTreeMap;

use mlxcel_artifacts::entry::PARAMETER_SCOPE;
use mlxcel_artifacts::{CacheType, Quant};
use mlxcel_models::Weight;
use safetensors::Dtype;
use weights::{Matrix, Weights};

use crate::{Global, Graph, Module, Numerics, Plan, Products, Tensor, TensorType, packing::Packing};

/// What layers build into: the function, the module's globals and what is known of the weights.
pub(crate) struct Builder<'a> {
    pub(crate) graph: Graph,
    pub(crate) module: &'a mut Module,
    packing: &'a mut Packing,
    dtype_of: &'a dyn Fn(&str) -> Dtype,
    /// What products take, see [`Plan::precision`].
    precision: Dtype,
    pub(crate) quant: Quant,
    /// What the cache holds.
    pub(crate) kv: CacheType,
    pub(crate) numerics: Numerics,
    /// How many of each row's tokens are real, `[batch]`; all, where there is none.
    pub(crate) lengths: Option<Tensor>,
    loaded: BTreeMap<String, Tensor>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        module: &'a mut Module,
        packing: &'a mut Packing,
        dtype_of: &'a dyn Fn(&str) -> Dtype,
        plan: &Plan,
    ) -> Self {
        let Plan { precision, quant, kv, numerics, .. } = *plan;
        let (graph, loaded) = (Graph::new(), BTreeMap::new());
        let precision = precision.dtype();
        Self { graph, module, packing, dtype_of, precision, quant, kv, numerics, lengths: None, loaded }
    }

    /// What operands of a matrix product are converted to.
    pub(crate) fn operand(&self) -> Dtype {
        match self.numerics.products {
            Products::Native => self.precision,
            Products::Widened | Products::Kernels(_) => Dtype::F32,
        }
    }

    /// How many of `tokens` tokens are real, in each of `batch` rows.
    pub(crate) fn lengths(&mut self, batch: usize, tokens: usize) -> Tensor {
        // A row of one token is never padding.
        let given = self.lengths.filter(|_| tokens > 1);
        #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
        given.unwrap_or_else(|| self.graph.full(tokens as f64, Dtype::I32, &[batch]))
    }

    /// A weight's element type in the checkpoint.
    pub(crate) fn dtype(&self, weight: &Weight) -> Dtype {
        (self.dtype_of)(&weight.name)
    }

    /// A weight in the checkpoint's type; where the target cannot load that, two neighbours of the last dimension to an
    /// `i32`.
    pub(crate) fn stored(&mut self, weight: &Weight) -> Tensor {
        let global = self.parameter(weight);
        self.load(&global)
    }

    /// What `body` makes of weights ahead of time, each `[outputs, inputs]`, see [`Packing::make`]. Those of experts are one
    /// matrix, in which each expert's outputs begin at a multiple of `lanes`.
    pub(crate) fn packed(
        &mut self,
        recipe: &str,
        weights: Weights<'_>,
        lanes: usize,
        suffixes: &[&str],
        body: impl FnOnce(&mut Graph, &[Tensor]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let ty = |weight: &Weight| TensorType::new(self.dtype(weight), weight.shape.as_slice());
        let sources: Vec<_> =
            weights.tensors().into_iter().map(|weight| (weight.name.as_str(), ty(weight))).collect();
        let recipe = format!("{recipe}{}", weights.kind());
        let body = |g: &mut Graph, stored: &[Tensor]| {
            let rows = weights.rows(g, stored, lanes);
            body(g, &rows)
        };
        match self.packing.make(&recipe, &sources, suffixes, body) {
            Ok(made) => {
                let load = |(name, ty): (String, TensorType)| {
                    let global = self.module.parameter(PARAMETER_SCOPE, &name, ty);
                    self.load(&global)
                };
                made.into_iter().map(load).collect()
            }
            Err(error) => vec![self.graph.fail_with(error); suffixes.len() + 1],
        }
    }

    fn parameter(&mut self, weight: &Weight) -> Global {
        let mut ty = TensorType::new(self.dtype(weight), weight.shape.as_slice());
        self.packing.keep(&weight.name, &ty);
        if self.in_words(weight) {
            if !ty.shape.last().is_some_and(|last| last.is_multiple_of(2)) {
                let problem = format!("found {ty} for {}, expected an even last dimension", weight.name);
                self.graph.fail("util.global", problem);
            }
            ty.dtype = Dtype::I32;
            if let Some(last) = ty.shape.last_mut() {
                *last /= 2;
            }
        }
        self.module.parameter(PARAMETER_SCOPE, &weight.name, ty)
    }

    /// Whether [`Self::stored`] gives two elements to a word.
    fn in_words(&self, weight: &Weight) -> bool {
        self.numerics.floats_as_bits && matches!(self.dtype(weight), Dtype::BF16 | Dtype::F16)
    }

    fn load(&mut self, global: &Global) -> Tensor {
        let graph = &mut self.graph;
        *self.loaded.entry(global.symbol.clone()).or_insert_with(|| graph.load(global))
    }

    /// `x`, elements of a weight as [`Self::stored`] gives them, as `dtype`.
    pub(crate) fn widen(&mut self, weight: &Weight, x: Tensor, dtype: Dtype) -> Tensor {
        if !self.in_words(weight) {
            return self.graph.convert(x, dtype);
        }
        let stored = self.dtype(weight);
        let g = &mut self.graph;
        let mut shape = g.shape(x).to_vec();
        let last = shape.len();
        shape.push(1);
        let halves = bits::halves(g, x, stored).map(|half| g.reshape(half, &shape));
        let pairs = g.concatenate(&halves, last);
        shape.truncate(last);
        if let Some(last) = shape.last_mut() {
            *last *= 2;
        }
        let wide = g.reshape(pairs, &shape);
        g.convert(wide, dtype)
    }

    /// A weight of a product with `x`, `[rows, inputs]`, as operands: one pair, or one for every part of the inputs that
    /// the target reads apart.
    pub(crate) fn operands(&mut self, matrix: Matrix<'_>, x: Tensor) -> Vec<(Tensor, Tensor)> {
        let Matrix { weight, transposed, .. } = matrix;
        let operand = self.operand();
        let mut stored = self.stored(weight);
        if self.numerics.products != Products::Native {
            // Else the compiler would keep a widened copy of the whole weight.
            stored = self.graph.barrier(stored);
        }
        if !self.in_words(weight) {
            return vec![(self.graph.convert(x, operand), self.graph.convert(stored, operand))];
        }
        if transposed {
            // Neighbours are two outputs, so that there are no parts of the inputs to read apart.
            return vec![(self.graph.convert(x, operand), self.widen(weight, stored, operand))];
        }
        let dtype = self.dtype(weight);
        let g = &mut self.graph;
        let &[rows, inputs] = g.shape(x) else {
            return Vec::new();
        };
        let pairs = g.reshape(x, &[rows, inputs / 2, 2]);
        let halves = bits::halves(g, stored, dtype);
        let part = |(index, weight)| {
            let x = g.slice_dimension(pairs, 2, index, index + 1);
            (g.reshape(x, &[rows, inputs / 2]), weight)
        };
        halves.into_iter().enumerate().map(part).collect()
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
