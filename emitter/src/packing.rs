//! Packed weights: the checkpoint's tensors, rearranged or quantized once, ahead of time.
//!
//! A second module, the packing module, has a function for every kind of packed tensor. The runtime runs it once; the model's
//! module takes the results as its parameters.

use std::collections::BTreeSet;

use mlxcel_artifacts::{
    entry::{Calibration, PACKING_MODULE_NAME, PackStep, Parameter},
    signless,
};
use mlxcel_models::{Coding, Storage, StoredTensor, Weight};

use crate::{
    collected::Collected,
    decode::{column_order, decode, decode_groups},
    error::Error,
    graph::{Function, Graph, Tensor},
    group_form::GroupForm,
    kernels::{Executable, Object},
    module::Module,
    types::TensorType,
};

/// The packing module and its steps, under construction.
#[derive(Debug)]
pub(crate) struct Packing {
    module: Module,
    steps: Vec<PackStep>,
    /// How moments are collected, if weights can be rounded by them.
    collected: Collected,
    /// The first weight of each step.
    first_weights: Vec<String>,
    /// The names of all results.
    result_names: BTreeSet<String>,
    /// Each with whether it has a calibrated function.
    recipes: Vec<(Recipe, bool)>,
}

/// What determines a function of the packing module. Equal recipes share one function.
#[derive(Debug, PartialEq)]
struct Recipe {
    name: String,
    /// The stored tensors.
    sources: Vec<TensorType>,
    /// How each weight is made of them: its coding, its shape, and the places of its tensors.
    weights: Vec<(Option<Coding>, Vec<usize>, Vec<usize>)>,
}

/// A weight and how the checkpoint stores it.
pub(crate) type StoredWeight<'w> = (&'w Weight, Storage);

/// A weight in a function of the packing module.
pub(crate) struct Source<'s> {
    pub(crate) weight: &'s Weight,
    pub(crate) storage: &'s Storage,
    stored: Vec<Tensor>,
    /// The moments of its inputs, if it is rounded by them.
    pub(crate) moments: Option<Tensor>,
}

impl Source<'_> {
    /// Returns the weight as it is stored, or decoded to `f32`.
    pub(crate) fn floats(&self, g: &mut Graph) -> Tensor {
        decode(g, self.storage, &self.weight.shape, &self.stored)
    }

    /// Returns the columns in the order of their groups, see [`Storage::order`].
    pub(crate) fn column_order(&self, g: &mut Graph) -> Tensor {
        let order = column_order(g, self.storage, &self.stored);
        order.unwrap_or_else(|| g.fail("packing", "found columns without groups, expected some"))
    }

    /// Returns the parts of a form that holds the weight, see [`decode_groups`].
    pub(crate) fn groups(&self, g: &mut Graph, form: GroupForm) -> Vec<Tensor> {
        decode_groups(g, self.storage, form, &self.stored)
    }
}

/// A packing module with its steps.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The module as MLIR text.
    pub mlir: String,
    /// The steps that make all parameters, in the order of use.
    pub steps: Vec<PackStep>,
    /// How moments are collected, if weights can be rounded by them.
    pub calibration: Option<Calibration>,
    /// The objects that the module is linked with.
    pub objects: Vec<Object>,
    /// The name of the first weight that each step packs.
    pub(crate) first_weights: Vec<String>,
}

impl Packing {
    /// Creates a packing module with functions that collect moments.
    pub(crate) fn new(mut collected: Collected) -> Self {
        let mut module = Module::new(PACKING_MODULE_NAME);
        std::mem::take(&mut collected.functions).into_iter().for_each(|function| module.add(function));
        Self {
            module,
            steps: Vec::new(),
            collected,
            first_weights: Vec::new(),
            result_names: BTreeSet::new(),
            recipes: Vec::new(),
        }
    }

    /// Passes the tensor `name` of the checkpoint to the target unchanged.
    pub(crate) fn pass_through(&mut self, name: &str, ty: &TensorType) {
        if self.result_names.insert(name.to_owned()) {
            let results = vec![Parameter::new(name, ty.dtype, &ty.shape)];
            let sources = vec![name.to_owned()];
            self.steps.push(PackStep {
                entry: None,
                sources,
                calibrated_entry: None,
                moments: None,
                results,
            });
            self.first_weights.push(name.to_owned());
        }
    }

    /// Packs weights by `body`. Returns the results' names and types.
    ///
    /// `recipe` names what `body` does: calls with equal recipes, shapes and storages must have equal bodies. The first result
    /// has the weights' names and the recipe's; the others also have a suffix.
    pub(crate) fn make(
        &mut self,
        recipe: &str,
        weights: &[StoredWeight<'_>],
        suffixes: &[&str],
        mut body: impl FnMut(&mut Graph, &[Source<'_>]) -> Vec<Tensor>,
    ) -> Result<Vec<(String, TensorType)>, Error> {
        let names: Vec<&str> = weights.iter().map(|(weight, _)| weight.name.as_str()).collect();
        // A mixture has too many experts to name them all.
        let joined = match names.as_slice() {
            [first, rest @ ..] if rest.len() > 3 => format!("{first}+{}", rest.len()),
            names => names.join("+"),
        };
        let first = format!("{joined}.{recipe}");
        let results_of = |step: &PackStep| {
            let ty = |result: &Parameter| TensorType::new(result.dtype, result.shape.as_slice());
            step.results.iter().map(|result| (result.name.clone(), ty(result))).collect::<Vec<_>>()
        };
        if !self.result_names.insert(first.clone()) {
            let is_first = |step: &&PackStep| step.results.iter().any(|result| result.name == first);
            return Ok(self.steps.iter().find(is_first).map(results_of).unwrap_or_default());
        }
        let tensors = distinct_tensors(weights);
        let wanted = Recipe::new(recipe, weights, &tensors);
        let moments = self.collected.moments_of(&names);
        let known = self
            .recipes
            .iter()
            .position(|(recipe, is_calibrated)| *recipe == wanted && *is_calibrated == moments.is_some());
        let number = known.unwrap_or(self.recipes.len());
        let entry = format!("{recipe}_{number}");
        let mut function =
            |entry: &str, moments| function(entry, &first, weights, &wanted, moments, &mut body);
        let (plain, types) = function(&entry, None)?;
        let calibrated_entry = moments.as_ref().map(|_| format!("{entry}_calibrated"));
        if known.is_none() {
            self.module.add(plain);
            if let (Some(entry), Some(moments)) = (&calibrated_entry, &moments) {
                self.module.add(function(entry, Some(moments))?.0);
            }
            self.recipes.push((wanted, moments.is_some()));
        }
        let name = |index: usize| match index {
            0 => first.clone(),
            _ => format!("{first}.{}", suffixes.get(index - 1).copied().unwrap_or_default()),
        };
        let results = types
            .iter()
            .enumerate()
            .map(|(index, ty)| Parameter::new(name(index), ty.dtype, &ty.shape))
            .collect();
        let sources = tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let moments = moments.map(|moments| moments.name);
        let step = PackStep { entry: Some(entry), sources, calibrated_entry, moments, results };
        let results = results_of(&step);
        self.steps.push(step);
        self.first_weights.extend(names.first().map(|&name| name.to_owned()));
        Ok(results)
    }

    /// Adds kernels that functions call.
    pub(crate) fn add_executables(&mut self, executables: Vec<Executable>) {
        self.module.add_executables(executables);
    }

    /// Returns the kernels that its functions call.
    #[cfg(test)]
    pub(crate) fn executables(&self) -> impl Iterator<Item = &Executable> {
        self.module.executables()
    }

    /// Returns whether any tensor is packed, and not only passed through.
    pub(crate) fn has_functions(&self) -> bool {
        !self.recipes.is_empty()
    }

    /// Returns the module as text, with its steps.
    pub(crate) fn finish(self) -> Result<Packed, Error> {
        let Self { module, steps, first_weights, collected, .. } = self;
        let (mlir, objects) = (module.to_mlir()?, module.objects());
        Ok(Packed { mlir, steps, calibration: collected.calibration, objects, first_weights })
    }
}

impl Recipe {
    fn new(name: &str, weights: &[StoredWeight<'_>], tensors: &[&StoredTensor]) -> Self {
        let place = |tensor: &StoredTensor| tensors.iter().position(|known| known.name == tensor.name);
        let weights = weights.iter().map(|(weight, storage)| {
            let places = storage.tensors.iter().filter_map(place).collect();
            (storage.coding.clone(), weight.shape.clone(), places)
        });
        Self {
            name: name.to_owned(),
            sources: tensors
                .iter()
                // Programs take integers without a sign, and bytes of types that they do not compute in.
                .map(|tensor| TensorType::new(signless(tensor.dtype), tensor.shape.as_slice()))
                .collect(),
            weights: weights.collect(),
        }
    }
}

/// Returns the function that packs weights by `body`, and the types of its results.
fn function(
    entry: &str,
    scope: &str,
    weights: &[StoredWeight<'_>],
    recipe: &Recipe,
    moments: Option<&Parameter>,
    body: &mut dyn FnMut(&mut Graph, &[Source<'_>]) -> Vec<Tensor>,
) -> Result<(Function, Vec<TensorType>), Error> {
    let mut graph = Graph::new();
    let arguments: Vec<_> = recipe.sources.iter().map(|ty| graph.argument(ty.dtype, &ty.shape)).collect();
    let moments = moments.map(|moments| graph.argument(moments.dtype, &moments.shape));
    let results = graph.scope(scope, |g| {
        let sources = weights.iter().zip(&recipe.weights).map(|((weight, storage), (_, _, places))| {
            let stored = places.iter().map(|&place| arguments[place]).collect();
            Source { weight, storage, stored, moments }
        });
        let sources: Vec<_> = sources.collect();
        body(g, &sources)
    });
    let types = results.iter().map(|&result| graph.type_of(result)).collect();
    Ok((graph.finish(entry, &results)?, types))
}

/// Returns the stored tensors of weights, each once.
fn distinct_tensors<'s>(weights: &'s [StoredWeight<'_>]) -> Vec<&'s StoredTensor> {
    let mut names = BTreeSet::new();
    let all = weights.iter().flat_map(|(_, storage)| &storage.tensors);
    all.filter(|tensor| names.insert(tensor.name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    fn ty(shape: &[usize]) -> TensorType {
        TensorType::new(Dtype::F32, shape)
    }

    fn weight(name: &str, shape: &[usize]) -> Weight {
        Weight { name: name.into(), shape: shape.into() }
    }

    #[test]
    fn equal_recipes_share_one_function() {
        let mut packing = Packing::new(Collected::default());
        let mut twice = |name, shape: &[usize]| {
            let weight = weight(name, shape);
            let stored = Storage::plain(&weight, Dtype::F32);
            let made = packing.make("twice", &[(&weight, stored)], &["copy"], |g, sources| {
                let x = sources[0].floats(g);
                let sum = g.add(x, x);
                vec![sum, x]
            });
            made.unwrap()
        };
        let first = twice("a", &[2]);
        assert_eq!(first, [("a.twice".into(), ty(&[2])), ("a.twice.copy".into(), ty(&[2]))]);
        assert_eq!(twice("b", &[2])[0].0, "b.twice");
        assert_eq!(twice("c", &[3])[0].0, "c.twice");
        assert_eq!(twice("a", &[2]), first);
        packing.pass_through("d", &ty(&[4]));
        packing.pass_through("d", &ty(&[4]));
        let Packed { mlir, steps, .. } = packing.finish().unwrap();
        let entries: Vec<_> = steps.iter().map(|step| step.entry.as_deref()).collect();
        assert_eq!(entries, [Some("twice_0"), Some("twice_0"), Some("twice_1"), None]);
        assert_eq!(mlir.matches("func.func").count(), 2);
    }

    #[test]
    fn wrong_operands_are_refused_with_the_name_of_the_tensor() {
        let weight = weight("weight", &[2]);
        let stored = Storage::plain(&weight, Dtype::F32);
        let error =
            Packing::new(Collected::default()).make("odd", &[(&weight, stored)], &[], |g, sources| {
                let x = sources[0].floats(g);
                vec![g.not(x)]
            });
        assert_eq!(
            error.unwrap_err().to_string(),
            "weight.odd: stablehlo.not: found tensor<2xf32>, expected an integer or boolean type"
        );
    }
}
