//! What all layers build into: the function, the module's globals and the weights.

use std::collections::{BTreeMap, HashMap};

use mlxcel_artifacts::{CacheType, entry::PARAMETER_SCOPE};
use mlxcel_models::{Linear, Norm, Storage, Weight};
use safetensors::Dtype;

use super::{
    addend::Addend,
    float_bits,
    linear::{RowProduct, RowsProduct},
    packing_kernels::PackingKernels,
    parts::{self, Part, PartSize, split_weight},
    weights::{Matrix, Weights},
};
use crate::{
    decode::take_last,
    form::{Activation, Form, Forms},
    global::Global,
    graph::{Graph, Tensor},
    group_form::GroupForm,
    kernels::CudaExpertsAdd,
    module::Module,
    packing::{Packable, Packing, Source, StoredWeight},
    plan::{Numerics, Plan, Products},
    types::TensorType,
};

/// The recipe of weights in few bits that are used as floats.
const DECODED: &str = "decoded";

/// Elements of the parts in which weights are packed for kernels of CPUs.
const KERNELS_PART: usize = 1 << 18;

/// Those for others. GPUs take more work at a time.
const GENERATED_PART: usize = 1 << 22;

/// What is known about a model's weights.
#[derive(Clone, Copy)]
pub(crate) struct KnownWeights<'a> {
    /// How the checkpoint stores each.
    pub(crate) storage_of: &'a dyn Fn(&Weight) -> Storage,
    /// How products read them.
    pub(crate) forms: &'a Forms,
}

/// The function under construction, the module's globals and what is known about the weights.
pub(crate) struct Builder<'a> {
    pub(crate) graph: Graph,
    pub(crate) module: &'a mut Module,
    packing: &'a mut Packing,
    weights: KnownWeights<'a>,
    /// The element type of matrix products, see [`Plan::precision`].
    pub(crate) precision: Dtype,
    pub(crate) cache_type: CacheType,
    /// See [`Plan::input_terms`].
    pub(crate) input_terms: usize,
    pub(crate) numerics: Numerics,
    pack_elements: Option<usize>,
    /// The number of real tokens of each row, `[batch]`. Without it, all tokens are real.
    pub(crate) lengths: Option<Tensor>,
    /// Positions, slots and first pages of rows, `[3, rows]`, in calls in place.
    pub(crate) row_numbers: Option<Tensor>,
    loaded: BTreeMap<String, Tensor>,
    /// If present, weights are arguments of the function: their names in the order of the arguments.
    pub(crate) arguments: Option<Vec<String>>,
    /// If present, the inputs of linear layers, with the names of the layers' weights.
    pub(crate) observed: Option<Vec<(Vec<String>, Tensor)>>,
    /// Rows that kernels have quantized, by the tensor of floats.
    pub(crate) quantized: HashMap<(Tensor, Activation), Vec<Tensor>>,
    /// What results of norms are the norms of, for kernels that normalize what they multiply.
    pub(crate) norms: HashMap<Tensor, (Tensor, Norm)>,
    /// Products of a single row by kernels of GPUs.
    pub(crate) row_products: HashMap<Tensor, RowProduct>,
    /// Those of several rows.
    pub(crate) rows_products: HashMap<Tensor, RowsProduct>,
    /// Results of mixtures that such kernels add to zeros, to be added to something else.
    pub(crate) expert_sums: HashMap<Tensor, CudaExpertsAdd>,
    /// The terms of mixtures' results, for kernels that add each to the residual stream.
    pub(crate) mixture_terms: HashMap<Tensor, [Addend; 2]>,
    /// The parts, `[splits, rows, outputs]`, of products whose parts a kernel has yet to add.
    pub(crate) product_parts: HashMap<Tensor, Tensor>,
    /// Rows in the type that kernels of GPUs multiply, `[rows, width]`, by the tensor of floats that is made of them.
    pub(crate) halves: HashMap<Tensor, Tensor>,
    /// Rows with their elements in the order that the second tensor lists.
    ordered: HashMap<(Tensor, Tensor), Tensor>,
}

impl<'a> Builder<'a> {
    /// Starts an empty function.
    pub(crate) fn new(
        module: &'a mut Module,
        packing: &'a mut Packing,
        weights: KnownWeights<'a>,
        plan: &Plan,
    ) -> Self {
        let Plan { precision, cache_type, input_terms, numerics, pack_elements, .. } = *plan;
        Self {
            graph: Graph::new(),
            module,
            packing,
            weights,
            precision: precision.dtype(),
            cache_type,
            input_terms,
            numerics,
            pack_elements,
            lengths: None,
            row_numbers: None,
            loaded: BTreeMap::new(),
            arguments: None,
            observed: None,
            quantized: HashMap::new(),
            norms: HashMap::new(),
            row_products: HashMap::new(),
            rows_products: HashMap::new(),
            expert_sums: HashMap::new(),
            mixture_terms: HashMap::new(),
            product_parts: HashMap::new(),
            halves: HashMap::new(),
            ordered: HashMap::new(),
        }
    }

    /// Returns the element type that operands of a matrix product are converted to.
    pub(crate) fn operand_dtype(&self) -> Dtype {
        match self.numerics.products {
            Products::Native => self.precision,
            Products::Widened | Products::Kernels(_) => Dtype::F32,
        }
    }

    /// Returns what a kernel made, in any type of floats, as `f32` of a shape. Kernels that multiply rows take what was made.
    pub(crate) fn widened(&mut self, made: Tensor, shape: &[usize]) -> Tensor {
        if self.graph.dtype(made) == Dtype::F32 {
            return self.graph.reshape(made, shape);
        }
        let wide = self.graph.convert(made, Dtype::F32);
        let wide = self.graph.reshape(wide, shape);
        self.halves.insert(wide, made);
        wide
    }

    /// Returns the number of real tokens among `tokens`, in each of `batch` rows.
    pub(crate) fn lengths(&mut self, batch: usize, tokens: usize) -> Tensor {
        // A row of one token is never padding.
        let given = self.lengths.filter(|_| tokens > 1);
        #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
        given.unwrap_or_else(|| self.graph.full(tokens as f64, Dtype::I32, &[batch]))
    }

    /// Returns how the checkpoint stores a weight.
    pub(crate) fn storage(&self, weight: &Weight) -> Storage {
        (self.weights.storage_of)(weight)
    }

    /// Returns how products read a weight.
    pub(crate) fn form(&self, weight: &Weight) -> Form {
        self.weights.forms.of(weight)
    }

    /// Returns what most quantized weights multiply; `None` if they multiply floats.
    pub(crate) fn activation(&self) -> Option<Activation> {
        self.weights.forms.activation()
    }

    /// Returns a weight's element type: that of its tensor in the checkpoint, or what it is decoded to.
    pub(crate) fn dtype(&self, weight: &Weight) -> Dtype {
        self.dtype_of(weight, &self.storage(weight))
    }

    fn dtype_of(&self, weight: &Weight, storage: &Storage) -> Dtype {
        match storage.coding {
            Some(_) => self.weights.forms.decoded_dtype(weight),
            None => storage.dtype(),
        }
    }

    /// Loads a weight in the checkpoint's type, or decoded. If the target cannot load that type, each `i32` holds two neighbors
    /// of the last dimension.
    pub(crate) fn stored(&mut self, weight: &Weight) -> Tensor {
        let storage = self.storage(weight);
        if storage.coding.is_some() {
            let dtype = self.dtype_of(weight, &storage);
            let in_parts = split_weight(weight, &storage, self.part_size(1));
            let stored = [(weight, storage)];
            let in_parts = in_parts.as_ref();
            let packable =
                Packable { recipe: DECODED, weights: &stored, in_parts: in_parts.as_slice(), suffixes: &[] };
            let made = self.make(&packable, |g, _, sources| {
                let decoded = sources.iter().map(|source| source.floats(g)).collect::<Vec<_>>();
                decoded.into_iter().map(|x| g.convert(x, dtype)).collect()
            });
            return made[0];
        }
        let global = self.parameter(weight);
        self.load(&global)
    }

    /// Loads the results of `body`, which packs weights ahead of time, see [`Packing::make`]. `body` takes the weights as one
    /// matrix, `[outputs, inputs]`, and may call kernels. Each expert begins at a multiple of `lanes`.
    pub(crate) fn packed(
        &mut self,
        recipe: &str,
        weights: Weights<'_>,
        lanes: usize,
        suffixes: &[&str],
        mut body: impl FnMut(&mut Graph, &mut PackingKernels, Tensor) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let mut kernels = PackingKernels::new(self.numerics.cpu_isa());
        let dtype = weights.tensors().first().map_or(Dtype::F32, |weight| self.dtype(weight));
        let stored = self.stored_weights(weights);
        let parts = parts::split(weights, &stored, self.part_size(lanes));
        let made = self.packed_from((recipe, suffixes), (weights, &stored), &parts, |g, weights, sources| {
            let rows = weights.rows(g, sources, lanes);
            let rows = g.convert(rows, dtype);
            body(g, &mut kernels, rows)
        });
        self.packing.add_executables(kernels.executables);
        made
    }

    /// Returns `x`, `[…, inputs]`, with the inputs in the order in which weights of this form have them.
    pub(crate) fn in_column_order(&mut self, weights: Weights<'_>, x: Tensor, form: GroupForm) -> Tensor {
        let stored = self.stored_weights(weights);
        if !weights.is_ordered(stored.iter().map(|(weight, storage)| (*weight, storage)), form) {
            return x;
        }
        let packable =
            Packable { recipe: "column_order", weights: &stored[..1], in_parts: &[], suffixes: &[] };
        let order = self
            .make(&packable, |g, _, sources| sources.iter().map(|source| source.column_order(g)).collect());
        let graph = &mut self.graph;
        *self.ordered.entry((x, order[0])).or_insert_with(|| take_last(graph, x, order[0]))
    }

    /// Loads codes and scales that `body` makes of the parts of a form, as [`Self::packed`].
    ///
    /// `may_permute` is whether inputs are multiplied in the order of [`Self::in_column_order`]. Without that, weights whose
    /// groups are not of neighbors are decoded and quantized again.
    pub(crate) fn packed_groups(
        &mut self,
        recipe: &str,
        weights: Weights<'_>,
        lanes: usize,
        (form, may_permute): (GroupForm, bool),
        mut body: impl FnMut(&mut Graph, &[Tensor]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let mut kernels = PackingKernels::new(self.numerics.cpu_isa());
        let stored = self.stored_weights(weights);
        let is_ordered = may_permute
            && weights.is_ordered(stored.iter().map(|(weight, storage)| (*weight, storage)), form);
        // The columns of a part must be in the order of the whole.
        let parts = match stored.iter().all(|(_, storage)| storage.order.is_none()) || is_ordered {
            true => parts::split(weights, &stored, self.part_size(lanes)),
            false => Vec::new(),
        };
        let made =
            self.packed_from((recipe, &["scales"]), (weights, &stored), &parts, |g, weights, sources| {
                let parts = weights.groups(g, sources, lanes, (form, is_ordered), &mut kernels);
                body(g, &parts)
            });
        self.packing.add_executables(kernels.executables);
        made
    }

    /// Loads the results of `body`, which takes all weights or those of a part.
    fn packed_from(
        &mut self,
        (recipe, suffixes): (&str, &[&str]),
        (weights, stored): (Weights<'_>, &[StoredWeight<'_>]),
        parts: &[Part],
        mut body: impl FnMut(&mut Graph, Weights<'_>, &[Source<'_>]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let recipe = format!("{recipe}{}", weights.recipe_suffix());
        let in_parts: Vec<_> = parts.iter().map(|part| &part.packed).collect();
        let packable = Packable { recipe: &recipe, weights: stored, in_parts: &in_parts, suffixes };
        self.make(&packable, |g, part, sources| match part.and_then(|index| parts.get(index)) {
            Some(part) => part.with_weights(|weights| body(g, weights, sources)),
            None => body(g, weights, sources),
        })
    }

    /// Loads the results of [`Packing::make`].
    fn make(
        &mut self,
        packable: &Packable<'_>,
        body: impl FnMut(&mut Graph, Option<usize>, &[Source<'_>]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        match self.packing.make(packable, body) {
            Ok(made) => {
                let load = |(name, ty): (String, TensorType)| {
                    let global = self.module.parameter(PARAMETER_SCOPE, &name, ty);
                    self.load(&global)
                };
                made.into_iter().map(load).collect()
            }
            Err(error) => vec![self.graph.fail_with(error); packable.suffixes.len() + 1],
        }
    }

    fn stored_weights<'w>(&self, weights: Weights<'w>) -> Vec<StoredWeight<'w>> {
        weights.tensors().into_iter().map(|weight| (weight, self.storage(weight))).collect()
    }

    /// Returns the size of parts in which weights are packed.
    fn part_size(&self, lanes: usize) -> PartSize {
        let of_target = if self.numerics.cpu_isa().is_some() { KERNELS_PART } else { GENERATED_PART };
        PartSize { elements: self.pack_elements.unwrap_or(of_target), lanes }
    }

    fn parameter(&mut self, weight: &Weight) -> Global {
        let storage = self.storage(weight);
        let mut ty = TensorType::new(storage.dtype(), weight.shape.as_slice());
        // Some containers have other names for tensors.
        let stored = storage.tensors.into_iter().next();
        let name = stored.map_or_else(|| weight.name.clone(), |tensor| tensor.name);
        self.packing.pass_through(&name, &ty);
        if self.is_in_words(weight) {
            if !ty.shape.last().is_some_and(|last| last.is_multiple_of(2)) {
                let problem = format!("found {ty} for {}, expected an even last dimension", weight.name);
                self.graph.fail("util.global", problem);
            }
            ty.dtype = Dtype::I32;
            if let Some(last) = ty.shape.last_mut() {
                *last /= 2;
            }
        }
        self.module.parameter(PARAMETER_SCOPE, &name, ty)
    }

    /// Returns whether [`Self::stored`] gives two elements per word.
    fn is_in_words(&self, weight: &Weight) -> bool {
        self.numerics.floats_as_bits && matches!(self.dtype(weight), Dtype::BF16 | Dtype::F16)
    }

    fn load(&mut self, global: &Global) -> Tensor {
        let (graph, arguments) = (&mut self.graph, &mut self.arguments);
        *self.loaded.entry(global.symbol.clone()).or_insert_with(|| match arguments {
            Some(names) => {
                names.push(global.symbol.clone());
                graph.argument(global.ty.dtype, &global.ty.shape)
            }
            None => graph.load(global),
        })
    }

    /// Remembers the input of linear layers, if inputs are observed.
    pub(crate) fn observe<'l>(&mut self, layers: impl IntoIterator<Item = &'l Linear>, x: Tensor) {
        if let Some(observed) = &mut self.observed {
            let names = layers.into_iter().map(|layer| layer.weight.name.clone());
            observed.push((names.collect(), x));
        }
    }

    /// Converts `x`, elements of a weight as [`Self::stored`] gives them, to `dtype`.
    pub(crate) fn widen(&mut self, weight: &Weight, x: Tensor, dtype: Dtype) -> Tensor {
        if !self.is_in_words(weight) {
            return self.graph.convert(x, dtype);
        }
        let stored = self.dtype(weight);
        let g = &mut self.graph;
        let mut shape = g.shape(x).to_vec();
        let last = shape.len();
        shape.push(1);
        let halves = float_bits::widen(g, x, stored).map(|half| g.reshape(half, &shape));
        let pairs = g.concatenate(&halves, last);
        shape.truncate(last);
        if let Some(last) = shape.last_mut() {
            *last *= 2;
        }
        let wide = g.reshape(pairs, &shape);
        g.convert(wide, dtype)
    }

    /// Returns the operands of the product of `x`, `[rows, inputs]`, and a weight. This is one pair, or one for every part
    /// of the inputs that the target reads separately.
    pub(crate) fn dot_operands(&mut self, matrix: Matrix<'_>, x: Tensor) -> Vec<(Tensor, Tensor)> {
        let Matrix { weight, transposed, .. } = matrix;
        let operand = self.operand_dtype();
        let mut stored = self.stored(weight);
        if self.numerics.products != Products::Native {
            // Otherwise the compiler keeps a widened copy of the whole weight.
            stored = self.graph.barrier(stored);
        }
        if !self.is_in_words(weight) {
            return vec![(self.graph.convert(x, operand), self.graph.convert(stored, operand))];
        }
        if transposed {
            // A word holds two outputs, so that inputs cannot be split into even and odd ones.
            return vec![(self.graph.convert(x, operand), self.widen(weight, stored, operand))];
        }
        let dtype = self.dtype(weight);
        let g = &mut self.graph;
        let &[rows, inputs] = g.shape(x) else {
            return Vec::new();
        };
        let pairs = g.reshape(x, &[rows, inputs / 2, 2]);
        let halves = float_bits::widen(g, stored, dtype);
        let part = |(index, weight)| {
            let x = g.slice_dimension(pairs, 2, index, index + 1);
            (g.reshape(x, &[rows, inputs / 2]), weight)
        };
        halves.into_iter().enumerate().map(part).collect()
    }

    /// Loads a weight as `f32`.
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
