//! Packed weights: the checkpoint's tensors, rearranged or quantized once, ahead of time.
//!
//! A second module, the packing module, has a function for every kind of packed tensor. The runtime runs it once; the model's
//! module takes the results as its parameters.

mod functions;

use std::collections::BTreeSet;

use mlxcel_artifacts::entry::{Calibration, PACKING_MODULE_NAME, PackCall, PackStep, Parameter};
use mlxcel_models::{Storage, StoragePart, StoredTensor, Weight};

use self::functions::{Functions, Known, Packed as FunctionOf};
pub(crate) use self::functions::{Source, StoredWeight};
use crate::{
    collected::Collected,
    error::Error,
    graph::{Graph, Tensor},
    kernels::{Executable, Object},
    module::Module,
    types::TensorType,
};

/// The packing module and its steps, under construction.
#[derive(Debug)]
pub(crate) struct Packing {
    module: Module,
    functions: Functions,
    steps: Vec<PackStep>,
    /// How moments are collected, if weights can be rounded by them.
    collected: Collected,
    /// The first weight of each step.
    first_weights: Vec<String>,
    /// The names of all results.
    result_names: BTreeSet<String>,
}

/// Weights that are packed in equal parts, one after the other.
pub(crate) struct InParts {
    /// One part of each weight.
    pub(crate) weights: Vec<(Weight, StoragePart)>,
    pub(crate) parts: usize,
}

/// What is packed: weights whose results belong together.
pub(crate) struct Packable<'w> {
    /// The name of what is done with them. Calls with equal recipes, shapes and storages must do the same.
    pub(crate) recipe: &'w str,
    pub(crate) weights: &'w [StoredWeight<'w>],
    /// Parts of them, whose results one after the other are those of the whole weights. None if they are packed as a whole.
    pub(crate) in_parts: &'w [&'w InParts],
    /// The names of results after the first.
    pub(crate) suffixes: &'w [&'w str],
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
            functions: Functions::default(),
            steps: Vec::new(),
            collected,
            first_weights: Vec::new(),
            result_names: BTreeSet::new(),
        }
    }

    /// Passes the tensor `name` of the checkpoint to the target unchanged.
    pub(crate) fn pass_through(&mut self, name: &str, ty: &TensorType) {
        if self.result_names.insert(name.to_owned()) {
            self.steps.push(PackStep::copy(name, Parameter::new(name, ty.dtype, &ty.shape)));
            self.first_weights.push(name.to_owned());
        }
    }

    /// Packs weights by `body`, which gets the index of the weights in parts, or none for all weights. Returns the results'
    /// names and types.
    ///
    /// The first result has the weights' names and the recipe's; the others also have a suffix.
    pub(crate) fn make(
        &mut self,
        packable: &Packable<'_>,
        mut body: impl FnMut(&mut Graph, Option<usize>, &[Source<'_>]) -> Vec<Tensor>,
    ) -> Result<Vec<(String, TensorType)>, Error> {
        let Packable { recipe, weights, in_parts, suffixes } = *packable;
        let names: Vec<&str> = weights.iter().map(|(weight, _)| weight.name.as_str()).collect();
        // A mixture has too many experts to name them all.
        let joined = match names.as_slice() {
            [first, rest @ ..] if rest.len() > 3 => format!("{first}+{}", rest.len()),
            names => names.join("+"),
        };
        let first = format!("{joined}.{recipe}");
        if self.result_names.contains(&first) {
            let is_first = |step: &&PackStep| step.results.iter().any(|result| result.name == first);
            return Ok(self.steps.iter().find(is_first).map(results_of).unwrap_or_default());
        }
        let tensors = distinct_tensors(weights.iter().map(|(_, storage)| storage));
        let moments = self.collected.moments_of(&names);
        let (module, functions) = (&mut self.module, &mut self.functions);
        let whole = FunctionOf { recipe, scope: &first, weights, tensors: &tensors, moments: None };
        let mut calls = Vec::new();
        let (entry, types) = match in_parts {
            [] => {
                let Known { entry, results } =
                    functions.get(module, &whole, &mut |g, sources| body(g, None, sources))?;
                (Some(entry), results)
            }
            in_parts => {
                let mut types: Vec<TensorType> = Vec::new();
                for (index, of) in in_parts.iter().enumerate() {
                    let mut body = |g: &mut Graph, sources: &[Source<'_>]| body(g, Some(index), sources);
                    let (call, results) =
                        of.call(recipe, &first, |of| functions.get(module, of, &mut body))?;
                    append(&mut types, &results, call.parts);
                    calls.push(call);
                }
                (None, types)
            }
        };
        let calibrated = moments.as_ref().map(|moments| {
            let whole = FunctionOf { moments: Some(moments), ..whole };
            functions.get(module, &whole, &mut |g, sources| body(g, None, sources))
        });
        let name = |index: usize| match index {
            0 => first.clone(),
            _ => format!("{first}.{}", suffixes.get(index - 1).copied().unwrap_or_default()),
        };
        let results = types.iter().enumerate();
        let results = results.map(|(index, ty)| Parameter::new(name(index), ty.dtype, &ty.shape)).collect();
        let step = PackStep {
            entry,
            sources: tensors.iter().map(|tensor| tensor.name.clone()).collect(),
            calibrated_entry: calibrated.transpose()?.map(|function| function.entry),
            moments: moments.map(|moments| moments.name),
            calls,
            results,
        };
        let results = results_of(&step);
        self.steps.push(step);
        self.first_weights.extend(names.first().map(|&name| name.to_owned()));
        // Not before: after an error there is no step whose results it could name.
        self.result_names.insert(first);
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
        !self.functions.is_empty()
    }

    /// Returns the module as text, with its steps.
    pub(crate) fn finish(self) -> Result<Packed, Error> {
        let Self { module, steps, first_weights, collected, .. } = self;
        let (mlir, objects) = (module.to_mlir()?, module.objects());
        Ok(Packed { mlir, steps, calibration: collected.calibration, objects, first_weights })
    }
}

impl InParts {
    /// Returns the calls of the function that `get` returns, and the types of its results.
    fn call(
        &self,
        recipe: &str,
        scope: &str,
        get: impl FnOnce(&FunctionOf<'_>) -> Result<Known, Error>,
    ) -> Result<(PackCall, Vec<TensorType>), Error> {
        let weights: Vec<_> =
            self.weights.iter().map(|(weight, part)| (weight, part.storage.clone())).collect();
        let tensors = distinct_tensors(weights.iter().map(|(_, storage)| storage));
        let is_split = |tensor: &&StoredTensor| {
            let of_weight = |(_, part): &(Weight, StoragePart)| {
                let mut all = part.storage.tensors.iter().zip(&part.is_split);
                all.any(|(known, is_split)| known.name == tensor.name && *is_split)
            };
            self.weights.iter().any(of_weight)
        };
        let (split, shared): (Vec<_>, Vec<_>) = tensors.into_iter().partition(is_split);
        let tensors = [split.as_slice(), &shared].concat();
        let Known { entry, results } =
            get(&FunctionOf { recipe, scope, weights: &weights, tensors: &tensors, moments: None })?;
        let [sources, shared] =
            [split, shared].map(|of| of.into_iter().map(|tensor| tensor.name.clone()).collect());
        Ok((PackCall { entry, sources, shared, parts: self.parts }, results))
    }
}

/// Appends the results of calls, of which each makes these, to those of the calls before.
fn append(all: &mut Vec<TensorType>, results: &[TensorType], calls: usize) {
    let whole = results.iter().map(|ty| {
        let mut ty = ty.clone();
        ty.shape.iter_mut().take(1).for_each(|first| *first *= calls);
        ty
    });
    if all.is_empty() {
        return all.extend(whole);
    }
    for (all, more) in all.iter_mut().zip(whole) {
        all.shape.iter_mut().zip(&more.shape).take(1).for_each(|(first, more)| *first += more);
    }
}

/// Returns the names and types of a step's results.
fn results_of(step: &PackStep) -> Vec<(String, TensorType)> {
    let ty = |result: &Parameter| TensorType::new(result.dtype, result.shape.as_slice());
    step.results.iter().map(|result| (result.name.clone(), ty(result))).collect()
}

/// Returns the stored tensors of weights, each once.
fn distinct_tensors<'s>(storages: impl Iterator<Item = &'s Storage>) -> Vec<&'s StoredTensor> {
    let mut names = BTreeSet::new();
    storages
        .flat_map(|storage| &storage.tensors)
        .filter(|tensor| names.insert(tensor.name.as_str()))
        .collect()
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
            let weights = [(&weight, stored)];
            let twice = Packable { recipe: "twice", weights: &weights, in_parts: &[], suffixes: &["copy"] };
            let made = packing.make(&twice, |g, _, sources| {
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
    fn weights_in_another_order_have_another_function() {
        let mut packing = Packing::new(Collected::default());
        for (name, order) in [("a", None), ("b", None), ("c", Some(vec![0, 1]))] {
            let weight = weight(name, &[2]);
            let weights = [(&weight, Storage { order, ..Storage::plain(&weight, Dtype::F32) })];
            let same = Packable { recipe: "same", weights: &weights, in_parts: &[], suffixes: &[] };
            packing.make(&same, |g, _, sources| vec![sources[0].floats(g)]).unwrap();
        }
        assert_eq!(packing.finish().unwrap().mlir.matches("func.func").count(), 2);
    }

    #[test]
    fn wrong_operands_are_refused_with_the_name_of_the_tensor() {
        let weight = weight("weight", &[2]);
        let stored = Storage::plain(&weight, Dtype::F32);
        let weights = [(&weight, stored)];
        let odd = Packable { recipe: "odd", weights: &weights, in_parts: &[], suffixes: &[] };
        let mut packing = Packing::new(Collected::default());
        // The second time, too.
        for _ in 0..2 {
            let error = packing.make(&odd, |g, _, sources| {
                let x = sources[0].floats(g);
                vec![g.not(x)]
            });
            assert_eq!(
                error.unwrap_err().to_string(),
                "weight.odd: stablehlo.not: found tensor<2xf32>, expected an integer or boolean type"
            );
        }
    }

    #[test]
    fn parts_of_several_weights_share_a_function_and_make_one_result() {
        let mut packing = Packing::new(Collected::default());
        let all = [weight("q", &[6, 4]), weight("k", &[2, 4])];
        let stored: Vec<_> = all.iter().map(|one| (one, Storage::plain(one, Dtype::F32))).collect();
        let in_parts = |(weight, storage): &StoredWeight<'_>, parts: usize| InParts {
            weights: vec![(self::weight(&weight.name, &[2, 4]), storage.part(parts).unwrap())],
            parts,
        };
        let in_parts = [in_parts(&stored[0], 3), in_parts(&stored[1], 1)];
        let in_parts: Vec<_> = in_parts.iter().collect();
        let packable = Packable { recipe: "twice", weights: &stored, in_parts: &in_parts, suffixes: &[] };
        let made = packing.make(&packable, |g, index, sources| {
            assert_eq!(
                (index, sources.len()),
                (Some(0), 1),
                "the second weight has the function of the first"
            );
            let x = sources[0].floats(g);
            vec![g.add(x, x)]
        });
        assert_eq!(made.unwrap(), [("q+k.twice".into(), ty(&[8, 4]))]);
        let Packed { mlir, steps, .. } = packing.finish().unwrap();
        let call = |source: &str, parts| PackCall {
            entry: "twice_0".into(),
            sources: vec![source.into()],
            shared: vec![],
            parts,
        };
        assert_eq!((steps[0].entry.as_deref(), &steps[0].calls), (None, &vec![call("q", 3), call("k", 1)]));
        assert_eq!(steps[0].sources, ["q", "k"]);
        assert_eq!(mlir.matches("func.func").count(), 1);
    }
}
