//! The linear layers of experts.

use mlxcel_models::{Experts, Linear, Mlp, Part, Weight};

use crate::{
    graph::{Graph, Tensor},
    kernels::PairedRows,
    layers::{
        builder::Builder,
        feed_forward::activation::Inner,
        linear::{distinct_tensors, layer_outputs},
        weights::{Matrix, Weights},
    },
};

/// Linear layers of one input that every expert has, with its own weights.
pub(super) struct ExpertLinears<'m> {
    /// The layers of the first expert.
    layers: Vec<&'m Linear>,
    /// The index of each layer's tensor.
    tensor_indices: Vec<usize>,
    /// The tensors of the first expert, as layers.
    tensors: Vec<&'m Linear>,
    /// The tensors of each expert.
    weights: Vec<Vec<Matrix<'m>>>,
}

impl<'m> ExpertLinears<'m> {
    /// Collects the layers that `pick` selects from each expert.
    fn new(experts: &'m [Mlp], pick: impl Fn(&'m Mlp) -> Vec<&'m Linear>) -> Self {
        let layers = experts.first().map(&pick).unwrap_or_default();
        let (firsts, tensor_indices) = distinct_tensors(layers.iter().copied());
        let tensors = firsts.iter().map(|&first| layers[first]).collect();
        let of_expert = |expert| {
            let layers = pick(expert);
            firsts.iter().filter_map(|&index| layers.get(index).map(|&layer| layer.into())).collect()
        };
        Self { layers, tensor_indices, tensors, weights: experts.iter().map(of_expert).collect() }
    }

    /// Returns the layers before the activation, and the layer after it.
    pub(super) fn up_and_down(layer: &'m Experts) -> [Self; 2] {
        [
            Self::new(&layer.experts, |mlp| mlp.gate.iter().chain([&mlp.up]).collect()),
            Self::new(&layer.experts, |mlp| vec![&mlp.down]),
        ]
    }

    /// Returns the weights of all experts.
    pub(super) fn weights(&self) -> Weights<'_> {
        Weights::Experts(&self.weights)
    }

    /// Returns the table of biases, `[experts, outputs]`, if the experts' only tensor has one.
    pub(super) fn bias(&self) -> Option<&'m Weight> {
        self.tensors.first()?.bias.as_ref()
    }

    /// Returns whether [`bias`](Self::bias) has all biases, if there are any.
    pub(super) fn has_one_table(&self) -> bool {
        let has_bias = |layer: &&Linear| layer.bias.is_some();
        let is_table = |layer: &Linear| layer.matrix.is_some() || layer.bias.is_none();
        !self.tensors.iter().any(has_bias) || matches!(*self.tensors, [only] if is_table(only))
    }

    /// Returns where the rows of the gate and of what it gates are, if one follows the other or they take turns.
    pub(super) fn paired_rows(&self) -> Option<PairedRows> {
        let [gate, up] = *self.layers else { return None };
        let outputs = self.weights().size().0 / 2;
        let part = |layer: &Linear| layer.part.map(|Part { groups, first, size }| (groups, first, size));
        match (self.tensors.len(), part(gate), part(up)) {
            (2, None, None) if gate.weight_outputs() == outputs => Some(PairedRows { up: outputs, step: 1 }),
            (1, Some((1, 0, size)), Some((1, first, _))) if size == outputs && first == outputs => {
                Some(PairedRows { up: outputs, step: 1 })
            }
            (1, Some((groups, 0, 1)), Some((_, 1, 1))) if groups == outputs => {
                Some(PairedRows { up: 1, step: 2 })
            }
            _ => None,
        }
    }

    /// Loads the biases of each tensor that has them, `[experts, outputs]`.
    pub(super) fn biases(&self, b: &mut Builder<'_>) -> Vec<Option<Tensor>> {
        let load = |layer: &&Linear| {
            let bias: &Weight = layer.bias.as_ref()?;
            if layer.matrix.is_none() {
                let problem = format!("found {}, a bias of one expert, expected a table of all", bias.name);
                return Some(b.graph.fail("experts", problem));
            }
            Some(b.weight_f32(bias))
        };
        self.tensors.iter().map(load).collect()
    }

    /// Splits `product`, `[1, rows, outputs of all tensors]`, into the layers' results. `rows_of` selects rows of a bias table.
    pub(super) fn split(
        &self,
        g: &mut Graph,
        product: Tensor,
        biases: &[Option<Tensor>],
        rows_of: impl Fn(&mut Graph, Tensor) -> Tensor,
    ) -> Vec<Tensor> {
        let mut first = 0;
        let mut biased = |(layer, table): (&&Linear, &Option<Tensor>)| {
            let last = first + layer.weight_outputs();
            let y = g.slice_dimension(product, 2, first, last);
            first = last;
            let Some(table) = *table else { return y };
            let rows = rows_of(g, table);
            let shape = g.shape(y).to_vec();
            let rows = g.reshape(rows, &shape);
            g.add(y, rows)
        };
        let whole: Vec<_> = self.tensors.iter().zip(biases).map(&mut biased).collect();
        let layers = self.layers.iter().zip(&self.tensor_indices);
        layers.map(|(layer, &index)| layer_outputs(g, layer, whole[index])).collect()
    }
}

/// Returns the results of the first layers: gate and up, or up alone.
pub(super) fn inner(first: &[Tensor]) -> Option<Inner> {
    match *first {
        [gate, up] => Some(Inner { gate: Some(gate), up }),
        [up] => Some(Inner { gate: None, up }),
        _ => None,
    }
}
