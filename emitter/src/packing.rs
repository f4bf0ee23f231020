//! Packed weights: the checkpoint's tensors, rearranged or quantized once, ahead of time.
//!
//! A second module, the packing module, has a function for every kind of packed tensor. The runtime runs it once; the model's
//! module takes the results as its parameters.

use std::collections::BTreeSet;

use mlxcel_artifacts::entry::{PACKING_MODULE_NAME, PackStep, Parameter};

use crate::{
    error::Error,
    graph::{Graph, Tensor},
    module::Module,
    types::TensorType,
};

/// The packing module and its steps, under construction.
#[derive(Debug)]
pub(crate) struct Packing {
    module: Module,
    steps: Vec<PackStep>,
    /// The names of all results.
    result_names: BTreeSet<String>,
    recipes: Vec<Recipe>,
}

/// What determines a function of the packing module. Equal recipes share one function.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    name: String,
    sources: Vec<TensorType>,
}

/// A packing module with its steps.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The module as MLIR text.
    pub mlir: String,
    /// The steps that make all parameters, in the order of use.
    pub steps: Vec<PackStep>,
}

impl Packing {
    /// Creates an empty packing module.
    pub(crate) fn new() -> Self {
        Self {
            module: Module::new(PACKING_MODULE_NAME),
            steps: Vec::new(),
            result_names: BTreeSet::new(),
            recipes: Vec::new(),
        }
    }

    /// Passes the tensor `name` of the checkpoint to the target unchanged.
    pub(crate) fn pass_through(&mut self, name: &str, ty: &TensorType) {
        if self.result_names.insert(name.to_owned()) {
            let results = vec![Parameter::new(name, ty.dtype, &ty.shape)];
            self.steps.push(PackStep { entry: None, sources: vec![name.to_owned()], results });
        }
    }

    /// Packs tensors of the checkpoint, `sources`, by `body`. Returns the results' names and types.
    ///
    /// `recipe` names what `body` does: calls with equal recipes and source types must have equal bodies. The first result has
    /// the sources' names and the recipe's; the others also have a suffix.
    pub(crate) fn make(
        &mut self,
        recipe: &str,
        sources: &[(&str, TensorType)],
        suffixes: &[&str],
        body: impl FnOnce(&mut Graph, &[Tensor]) -> Vec<Tensor>,
    ) -> Result<Vec<(String, TensorType)>, Error> {
        let names: Vec<String> = sources.iter().map(|(name, _)| (*name).to_owned()).collect();
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
        let wanted =
            Recipe { name: recipe.to_owned(), sources: sources.iter().map(|(_, ty)| ty.clone()).collect() };
        let mut graph = Graph::new();
        let arguments: Vec<_> = wanted.sources.iter().map(|ty| graph.argument(ty.dtype, &ty.shape)).collect();
        let results = graph.scope(&first, |g| body(g, &arguments));
        let types: Vec<_> = results.iter().map(|&result| graph.type_of(result)).collect();
        let known = self.recipes.iter().position(|recipe| *recipe == wanted);
        let number = known.unwrap_or(self.recipes.len());
        let entry = format!("{recipe}_{number}");
        let function = graph.finish(&entry, &results)?;
        if known.is_none() {
            self.module.add(function);
            self.recipes.push(wanted);
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
        let step = PackStep { entry: Some(entry), sources: names, results };
        let results = results_of(&step);
        self.steps.push(step);
        Ok(results)
    }

    /// Returns whether any tensor is packed, and not only passed through.
    pub(crate) fn has_functions(&self) -> bool {
        !self.recipes.is_empty()
    }

    /// Returns the module as text, with its steps.
    pub(crate) fn finish(self) -> Result<Packed, Error> {
        Ok(Packed { mlir: self.module.to_mlir()?, steps: self.steps })
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    fn ty(shape: &[usize]) -> TensorType {
        TensorType::new(Dtype::F32, shape)
    }

    #[test]
    fn equal_recipes_share_one_function() {
        let mut packing = Packing::new();
        let mut twice = |name, shape: &[usize]| {
            let made = packing.make("twice", &[(name, ty(shape))], &["copy"], |g, x| {
                let sum = g.add(x[0], x[0]);
                vec![sum, x[0]]
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
        let Packed { mlir, steps } = packing.finish().unwrap();
        let entries: Vec<_> = steps.iter().map(|step| step.entry.as_deref()).collect();
        assert_eq!(entries, [Some("twice_0"), Some("twice_0"), Some("twice_1"), None]);
        assert_eq!(mlir.matches("func.func").count(), 2);
    }

    #[test]
    fn wrong_operands_are_refused_with_the_name_of_the_tensor() {
        let error = Packing::new().make("odd", &[("weight", ty(&[2]))], &[], |g, x| vec![g.not(x[0])]);
        assert_eq!(
            error.unwrap_err().to_string(),
            "weight.odd: stablehlo.not: found tensor<2xf32>, expected an integer or boolean type"
        );
    }
}
