//! The functions of the packing module.

use mlxcel_artifacts::{entry::Parameter, signless};
use mlxcel_models::{Coding, Storage, StoredTensor, Weight};

use crate::{
    decode::{column_order, decode, decode_groups},
    error::Error,
    graph::{Graph, Tensor},
    group_form::GroupForm,
    module::Module,
    types::TensorType,
};

/// A weight and how the checkpoint stores it.
pub(crate) type StoredWeight<'w> = (&'w Weight, Storage);

/// What makes the results of a function.
pub(crate) type Body<'b> = &'b mut dyn FnMut(&mut Graph, &[Source<'_>]) -> Vec<Tensor>;

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

/// What a function packs.
pub(super) struct Packed<'w> {
    /// The name of what it does.
    pub(super) recipe: &'w str,
    /// What errors call it.
    pub(super) scope: &'w str,
    pub(super) weights: &'w [StoredWeight<'w>],
    /// The tensors that store them, which the function takes in this order.
    pub(super) tensors: &'w [&'w StoredTensor],
    /// What it also takes, if it rounds by them.
    pub(super) moments: Option<&'w Parameter>,
}

/// A function of the packing module.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) entry: String,
    pub(super) results: Vec<TensorType>,
}

/// All functions, each with what determines it. Equal ones are shared.
#[derive(Debug, Default)]
pub(super) struct Functions(Vec<(Recipe, Known)>);

#[derive(Debug, PartialEq)]
struct Recipe {
    name: String,
    /// The stored tensors.
    sources: Vec<TensorType>,
    moments: Option<TensorType>,
    weights: Vec<Made>,
}

/// How a weight is made of the stored tensors.
#[derive(Debug, PartialEq)]
struct Made {
    coding: Option<Coding>,
    shape: Vec<usize>,
    /// The places of its tensors.
    places: Vec<usize>,
    /// Whether its groups are not of neighbors.
    is_ordered: bool,
}

impl Functions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the function that packs weights by `body`, and adds it to the module if it is new.
    pub(super) fn get(
        &mut self,
        module: &mut Module,
        packed: &Packed<'_>,
        body: Body<'_>,
    ) -> Result<Known, Error> {
        let recipe = Recipe::new(packed);
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == recipe) {
            return Ok(known.clone());
        }
        let Packed { recipe: name, scope, weights, moments, .. } = packed;
        let suffix = if moments.is_some() { "_calibrated" } else { "" };
        let entry = format!("{name}_{}{suffix}", self.0.len());
        let mut graph = Graph::new();
        let arguments: Vec<_> = recipe.sources.iter().map(|ty| graph.argument(ty.dtype, &ty.shape)).collect();
        let moments = moments.map(|moments| graph.argument(moments.dtype, &moments.shape));
        let results = graph.scope(*scope, |g| {
            let sources = weights.iter().zip(&recipe.weights).map(|((weight, storage), made)| {
                let stored = made.places.iter().map(|&place| arguments[place]).collect();
                Source { weight, storage, stored, moments }
            });
            let sources: Vec<_> = sources.collect();
            body(g, &sources)
        });
        let types = results.iter().map(|&result| graph.type_of(result)).collect();
        module.add(graph.finish(&entry, &results)?);
        let known = Known { entry, results: types };
        self.0.push((recipe, known.clone()));
        Ok(known)
    }
}

impl Recipe {
    fn new(packed: &Packed<'_>) -> Self {
        let Packed { recipe, weights, tensors, moments, .. } = packed;
        let place = |tensor: &StoredTensor| tensors.iter().position(|known| known.name == tensor.name);
        let weights = weights.iter().map(|(weight, storage)| Made {
            coding: storage.coding.clone(),
            shape: weight.shape.clone(),
            places: storage.tensors.iter().filter_map(place).collect(),
            is_ordered: storage.order.is_some(),
        });
        Self {
            name: (*recipe).to_owned(),
            sources: tensors
                .iter()
                // Programs take integers without a sign, and bytes of types that they do not compute in.
                .map(|tensor| TensorType::new(signless(tensor.dtype), tensor.shape.as_slice()))
                .collect(),
            moments: moments.map(|moments| TensorType::new(moments.dtype, moments.shape.as_slice())),
            weights: weights.collect(),
        }
    }
}
