//! The weights of matrix products, as in the checkpoint.

use mlxcel_models::{Linear, Weight};

use crate::graph::{Graph, Tensor};

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

    /// Returns the matrix `[outputs, inputs]` of the stored tensor.
    fn rows(&self, g: &mut Graph, mut x: Tensor) -> Tensor {
        if let Some(index) = self.stack_index {
            let shape = g.shape(x).to_vec();
            let one = g.slice_dimension(x, 0, index, index + 1);
            x = g.reshape(one, shape.get(1..).unwrap_or_default());
        }
        if self.transposed { g.transpose(x, &[1, 0]) } else { x }
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
        let all: Vec<_> = match self {
            Self::Layers(layers) => layers.iter().collect(),
            Self::Experts(experts) => experts.iter().flatten().collect(),
        };
        let mut tensors: Vec<&Weight> = Vec::new();
        for Matrix { weight, .. } in all {
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

    /// Returns `[outputs, inputs]` of each layer, or of all experts together, whose outputs are each padded with zeros to a
    /// multiple of `lanes`. `stored` are the [`tensors`](Self::tensors).
    pub(super) fn rows(self, g: &mut Graph, stored: &[Tensor], lanes: usize) -> Vec<Tensor> {
        let tensors = self.tensors();
        let find = |matrix: &Matrix<'_>| {
            let place = tensors.iter().position(|tensor| tensor.name == matrix.weight.name);
            place.and_then(|place| stored.get(place).copied())
        };
        let mut rows = |matrices: &[Matrix<'_>]| -> Vec<Tensor> {
            let with_tensor = matrices.iter().filter_map(|matrix| Some((matrix, find(matrix)?)));
            with_tensor.map(|(matrix, x)| matrix.rows(g, x)).collect()
        };
        match self {
            Self::Layers(layers) => rows(layers),
            Self::Experts(experts) => {
                let parts: Vec<_> = experts.iter().map(|layers| rows(layers)).collect();
                let padded: Vec<_> =
                    parts.iter().map(|layers| concatenate_padded(g, layers, lanes)).collect();
                vec![g.concatenate(&padded, 0)]
            }
        }
    }
}

/// Concatenates rows, and pads them with zeros to a multiple of `lanes`.
pub(super) fn concatenate_padded(g: &mut Graph, rows: &[Tensor], lanes: usize) -> Tensor {
    let rows = if let &[only] = rows { only } else { g.concatenate(rows, 0) };
    let shape = g.shape(rows).to_vec();
    let missing = shape.first().map_or(0, |outputs| outputs.next_multiple_of(lanes) - outputs);
    if missing == 0 {
        return rows;
    }
    let zero = g.scalar(0.0, g.dtype(rows));
    let none = vec![0; shape.len()];
    let mut high = none.clone();
    high[0] = missing;
    g.pad(rows, zero, &none, &high, &none)
}
