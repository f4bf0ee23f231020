//! The weights of matrix products, as in the checkpoint.

use mlxcel_models::{Linear, Storage, Weight};

use super::{
    compensation::{compensate, factor},
    packing_kernels::PackingKernels,
    quantization::quantize_groups,
};
use crate::{
    graph::{Graph, Tensor},
    group_form::GroupForm,
    packing::Source,
};

/// A weight of matrix products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'w> {
    pub(super) weight: &'w Weight,
    /// Its index, if the tensor is a stack of matrices, `[matrices, …]`.
    pub(super) stack_index: Option<usize>,
    /// Whether it is `[inputs, outputs]` in place of `[outputs, inputs]`.
    pub(super) transposed: bool,
}

impl<'w> From<&'w Linear> for Matrix<'w> {
    fn from(layer: &'w Linear) -> Self {
        Self { weight: &layer.weight, stack_index: layer.matrix, transposed: layer.transposed }
    }
}

impl<'w> From<&'w Weight> for Matrix<'w> {
    fn from(weight: &'w Weight) -> Self {
        Self { weight, stack_index: None, transposed: false }
    }
}

impl Matrix<'_> {
    /// Returns the number of outputs and of inputs.
    pub(super) fn size(&self) -> (usize, usize) {
        let first = usize::from(self.stack_index.is_some());
        let of = |index: usize| self.weight.shape.get(first + index).copied().unwrap_or(1);
        if self.transposed { (of(1), of(0)) } else { (of(0), of(1)) }
    }

    /// Returns the matrix of a stack that this is.
    fn of_stack(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let Some(index) = self.stack_index else { return x };
        let shape = g.shape(x).to_vec();
        let one = g.slice_dimension(x, 0, index, index + 1);
        g.reshape(one, shape.get(1..).unwrap_or_default())
    }

    /// Returns the matrix `[outputs, inputs]` of the stored tensor.
    fn rows(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let x = self.of_stack(g, x);
        if self.transposed { g.transpose(x, &[1, 0]) } else { x }
    }

    /// Returns whether kernels read it in this form as it is stored.
    fn is_held_in(&self, form: GroupForm, storage: &Storage) -> bool {
        form.is_held_by(storage, self.size().1, self.transposed)
    }
}

/// Weights that are packed together, with the same number of inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Weights<'w> {
    /// Several layers, whose outputs are concatenated.
    Layers(&'w [Matrix<'w>]),
    /// The experts of a mixture, each with several layers.
    Experts(&'w [Vec<Matrix<'w>>]),
}

impl<'w> Weights<'w> {
    /// Returns the layers: those of the first expert, or all.
    pub(super) fn layers(self) -> &'w [Matrix<'w>] {
        match self {
            Self::Layers(layers) => layers,
            Self::Experts(experts) => experts.first().map_or(&[], Vec::as_slice),
        }
    }

    /// Returns the number of outputs, of one expert, and of inputs.
    pub(super) fn size(self) -> (usize, usize) {
        let layers = self.layers();
        let outputs = layers.iter().map(|layer| layer.size().0).sum();
        (outputs, layers.first().map_or(1, |layer| layer.size().1))
    }

    /// Returns every tensor once.
    pub(super) fn tensors(self) -> Vec<&'w Weight> {
        let mut tensors: Vec<&Weight> = Vec::new();
        for Matrix { weight, .. } in self.all() {
            // Matrices of a stack are adjacent.
            let known = |other: &&Weight| other.name == weight.name;
            if !tensors.iter().rev().take(2).any(known) {
                tensors.push(weight);
            }
        }
        tensors
    }

    /// Returns what distinguishes recipes for tensors of the same types.
    pub(super) fn recipe_suffix(self) -> &'static str {
        let transposed = self.layers().iter().any(|layer| layer.transposed);
        match (self, transposed) {
            (Self::Layers(_), false) => "",
            (Self::Layers(_), true) => "_transposed",
            (Self::Experts(_), false) => "_experts",
            (Self::Experts(_), true) => "_experts_transposed",
        }
    }

    /// Returns `[outputs, inputs]` of all layers, or of all experts, whose outputs are each padded with zeros to a multiple of
    /// `lanes`. `sources` are the [`tensors`](Self::tensors).
    pub(super) fn rows(self, g: &mut Graph, sources: &[Source<'_>], lanes: usize) -> Tensor {
        let stored: Vec<_> = sources.iter().map(|source| source.floats(g)).collect();
        let parts = self.collect(g, lanes, |g, matrix, place| vec![matrix.rows(g, stored[place])]);
        parts.first().copied().unwrap_or_else(|| g.fail("packing", "found no weights"))
    }

    /// Returns the parts of a form, [`Self::rows`] of each: as they are stored if the form holds that, otherwise quantized.
    ///
    /// `is_ordered` is whether inputs come in the order of the groups, see [`Self::is_ordered`].
    pub(super) fn groups(
        self,
        g: &mut Graph,
        sources: &[Source<'_>],
        lanes: usize,
        (form, is_ordered): (GroupForm, bool),
        kernels: &mut PackingKernels,
    ) -> Vec<Tensor> {
        let is_held = |source: &Source<'_>| {
            let may_be = source.storage.order.is_none() || is_ordered;
            may_be && self.holds(source.weight, source.storage, form)
        };
        let stored = |source: &Source<'_>| match is_held(source) {
            true => Stored::Parts(source.groups(g, form)),
            false => Stored::Floats(source.floats(g)),
        };
        let stored: Vec<_> = sources.iter().map(stored).collect();
        let moments = sources.first().and_then(|source| source.moments);
        let by = moments.map(|moments| factor(kernels, g, moments));
        self.collect(g, lanes, |g, matrix, place| match &stored[place] {
            Stored::Parts(parts) => parts.iter().map(|&part| matrix.of_stack(g, part)).collect(),
            &Stored::Floats(floats) => {
                let rows = matrix.rows(g, floats);
                match by {
                    Some(by) => compensate(kernels, g, (rows, by), form),
                    None => quantize_groups(g, rows, form, kernels),
                }
            }
        })
    }

    /// Returns whether the form holds a weight as it is stored.
    fn holds(self, weight: &Weight, storage: &Storage, form: GroupForm) -> bool {
        let first = self.all().into_iter().find(|matrix| matrix.weight.name == weight.name);
        first.is_some_and(|matrix| matrix.is_held_in(form, storage))
    }

    /// Returns whether all columns are packed in the [order](Storage::order) of the first weight, and so are multiplied by
    /// inputs in that order. Experts share their inputs.
    pub(super) fn is_ordered<'s>(
        self,
        mut stored: impl Iterator<Item = (&'s Weight, &'s Storage)>,
        form: GroupForm,
    ) -> bool {
        let mut order = None;
        let mut is_first = |storage: &'s Storage| {
            storage.order.is_some() && *order.get_or_insert(&storage.order) == &storage.order
        };
        matches!(self, Self::Layers(_))
            && stored.all(|(weight, storage)| is_first(storage) && self.holds(weight, storage, form))
    }

    /// Returns every matrix.
    pub(super) fn all(self) -> Vec<&'w Matrix<'w>> {
        match self {
            Self::Layers(layers) => layers.iter().collect(),
            Self::Experts(experts) => experts.iter().flatten().collect(),
        }
    }

    /// Puts together the parts of all matrices, which `parts_of` returns for one and the index of its tensor.
    fn collect(
        self,
        g: &mut Graph,
        lanes: usize,
        mut parts_of: impl FnMut(&mut Graph, &Matrix<'_>, usize) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let tensors = self.tensors();
        let place_of =
            |matrix: &Matrix<'_>| tensors.iter().position(|tensor| tensor.name == matrix.weight.name);
        let mut joined = |g: &mut Graph, matrices: &[Matrix<'_>], lanes: usize| -> Vec<Tensor> {
            let places = matrices.iter().filter_map(|matrix| Some((matrix, place_of(matrix)?)));
            let parts: Vec<_> = places.map(|(matrix, place)| parts_of(g, matrix, place)).collect();
            by_part(&parts).into_iter().map(|rows| concatenate_padded(g, &rows, lanes)).collect()
        };
        match self {
            Self::Layers(layers) => joined(g, layers, 1),
            Self::Experts(experts) => {
                let parts: Vec<_> = experts.iter().map(|layers| joined(g, layers, lanes)).collect();
                by_part(&parts).into_iter().map(|rows| concatenate_padded(g, &rows, 1)).collect()
            }
        }
    }
}

/// A weight in a function that packs it.
enum Stored {
    Floats(Tensor),
    /// The parts of a form.
    Parts(Vec<Tensor>),
}

/// Returns the first part of each matrix, the second of each, and so on.
fn by_part(parts: &[Vec<Tensor>]) -> Vec<Vec<Tensor>> {
    let count = parts.first().map_or(0, Vec::len);
    let of_all = |part: usize| parts.iter().filter_map(|parts| parts.get(part).copied()).collect();
    (0..count).map(of_all).collect()
}

/// Concatenates rows, and pads them with zeros to a multiple of `lanes`.
pub(super) fn concatenate_padded(g: &mut Graph, rows: &[Tensor], lanes: usize) -> Tensor {
    let rows = if let &[only] = rows { only } else { g.concatenate(rows, 0) };
    let outputs = g.shape(rows).first().map_or(0, |outputs| outputs.next_multiple_of(lanes));
    g.pad_end(rows, 0, outputs)
}
