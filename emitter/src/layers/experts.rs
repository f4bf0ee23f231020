//! Mixtures of experts. A token computes its own experts and no others.
//!
//! Every token with each of its experts is a row. Kernels compute rows that lie in segments, one expert after the other, so
//! that weights are read once for all rows of an expert. Without kernels, a loop takes blocks of rows of one expert.

mod plain;

use mlxcel_artifacts::Quant;
use mlxcel_models::{Experts, Linear, Mlp, Weight};
use safetensors::Dtype;

use super::{
    Builder,
    linear::{linear, part, tensors_of},
    mlp::{inner, mlp},
    panels::{self, Rows, Segments},
    weights::{Matrix, Weights},
};
use crate::{Graph, Isa, Products, Reduction, Tensor, TensorType, kernels::Executable};

/// See [`Experts`]: `[batch, tokens, hidden]` → the same.
pub(crate) fn experts(b: &mut Builder<'_>, layer: &Experts, x: Tensor) -> Tensor {
    let logits = exactly(b, ("router", &layer.router), x);
    let y = match b.numerics.products {
        Products::Kernels(isa) => by_kernels(b, isa, layer, logits, x),
        Products::Native | Products::Widened => plain::experts(b, layer, logits, x),
    };
    let Some(shared) = &layer.shared else { return y };
    b.scope("shared", |b| {
        let mut z = mlp(b, &shared.mlp, x);
        if let Some(gate) = &shared.gate {
            let gate = exactly(b, ("gate", gate), x);
            let gate = b.graph.logistic(gate);
            let shape = b.graph.shape(z).to_vec();
            let gate = b.graph.reshape(gate, &shape[..2]);
            let gate = b.graph.broadcast_in_dim(gate, &shape, &[0, 1]);
            z = b.graph.multiply(z, gate);
        }
        b.graph.add(y, z)
    })
}

/// A linear layer that is not quantised: few weights, on which much depends.
fn exactly(b: &mut Builder<'_>, layer: (&'static str, &Linear), x: Tensor) -> Tensor {
    let quant = std::mem::replace(&mut b.quant, Quant::None);
    let y = linear(b, layer, x);
    b.quant = quant;
    y
}

/// Linear layers that experts have of one input, alike but for their weights.
struct Layers<'m> {
    /// Those of the first expert.
    layers: Vec<&'m Linear>,
    /// Which tensor each is a part of.
    places: Vec<usize>,
    /// The tensors of the first expert, as layers.
    tensors: Vec<&'m Linear>,
    /// Those of all.
    weights: Vec<Vec<Matrix<'m>>>,
}

impl<'m> Layers<'m> {
    /// What `pick` takes of each expert.
    fn new(experts: &'m [Mlp], pick: impl Fn(&'m Mlp) -> Vec<&'m Linear>) -> Self {
        let layers = experts.first().map(&pick).unwrap_or_default();
        let (firsts, places) = tensors_of(layers.iter().copied());
        let tensors = firsts.iter().map(|&first| layers[first]).collect();
        let of_expert = |expert| {
            let layers = pick(expert);
            firsts.iter().filter_map(|&index| layers.get(index).map(|&layer| layer.into())).collect()
        };
        Self { layers, places, tensors, weights: experts.iter().map(of_expert).collect() }
    }

    /// What gives the inner width, or takes it.
    fn both(layer: &'m Experts) -> [Self; 2] {
        [
            Self::new(&layer.experts, |mlp| mlp.gate.iter().chain([&mlp.up]).collect()),
            Self::new(&layer.experts, |mlp| vec![&mlp.down]),
        ]
    }

    fn weights(&self) -> Weights<'_> {
        Weights::Experts(&self.weights)
    }

    /// The tables of biases, `[experts, outputs]`, of each tensor that has one.
    fn biases(&self, b: &mut Builder<'_>) -> Vec<Option<Tensor>> {
        let table = |layer: &&Linear| {
            let bias: &Weight = layer.bias.as_ref()?;
            if layer.matrix.is_none() {
                let problem = format!("found {}, a bias of one expert, expected a table of all", bias.name);
                return Some(b.graph.fail("experts", problem));
            }
            Some(b.weight_f32(bias))
        };
        self.tensors.iter().map(table).collect()
    }

    /// The layers' results, of `product`, `[1, rows, outputs of all tensors]`; `bias` gives rows of a table.
    fn split(
        &self,
        g: &mut Graph,
        product: Tensor,
        biases: &[Option<Tensor>],
        bias: impl Fn(&mut Graph, Tensor) -> Tensor,
    ) -> Vec<Tensor> {
        let mut first = 0;
        let mut of_tensor = |(layer, table): (&&Linear, &Option<Tensor>)| {
            let last = first + layer.weight_outputs();
            let y = g.slice_dimension(product, 2, first, last);
            first = last;
            let Some(table) = *table else { return y };
            let rows = bias(g, table);
            let shape = g.shape(y).to_vec();
            let rows = g.reshape(rows, &shape);
            g.add(y, rows)
        };
        let whole: Vec<_> = self.tensors.iter().zip(biases).map(&mut of_tensor).collect();
        self.layers.iter().zip(&self.places).map(|(layer, &place)| part(g, layer, whole[place])).collect()
    }
}

/// Of what the first layers give, gate and up or up alone, what the last one takes.
fn between(g: &mut Graph, layer: &Experts, given: &[Tensor]) -> Tensor {
    match (layer.experts.first(), given) {
        (Some(mlp), &[gate, up]) => inner(g, mlp, Some(gate), up),
        (Some(mlp), &[up]) => inner(g, mlp, None, up),
        _ => g.fail("experts", "found no experts, expected one at least"),
    }
}

fn by_kernels(b: &mut Builder<'_>, isa: Isa, layer: &Experts, logits: Tensor, x: Tensor) -> Tensor {
    let &[batch, tokens, hidden] = b.graph.shape(x) else {
        return x;
    };
    let (all, count, active) = (batch * tokens, layer.experts.len(), layer.active);
    let rows = all * active;
    let segments = if all == 1 { active } else { count };
    let lengths = b.lengths(batch, tokens);
    let whole = |dtype| TensorType::new(dtype, [batch, tokens, active]);
    let numbers = |count| TensorType::new(Dtype::I32, [count]);
    let operands = [logits, lengths];
    let route = Executable {
        isa,
        file: "route",
        function: "route",
        operands: operands.iter().map(|&operand| b.graph.type_of(operand)).collect(),
        cache: 0..0,
        results: vec![
            whole(Dtype::F32),
            whole(Dtype::I32),
            numbers(rows),
            numbers(rows),
            numbers(segments),
            numbers(segments + 1),
        ],
        numbers: 0,
        sizes: vec![batch, tokens, count, active, usize::from(layer.normalised)],
        items: 1,
        grain: 1,
    };
    let routed = b.module.call(&mut b.graph, route, &operands, &[]);
    let &[weights, slots, row_tokens, row_experts, experts, begins] = routed.as_slice() else {
        return x;
    };
    let segments = Some(Segments { experts, begins });
    let g = &mut b.graph;
    let flat = g.reshape(x, &[all, hidden]);
    let taken = if all == 1 {
        let row = g.reshape(flat, &[hidden]);
        g.broadcast_in_dim(row, &[rows, hidden], &[1])
    } else {
        g.take_rows(flat, row_tokens)
    };
    let x = g.reshape(taken, &[1, rows, hidden]);
    let products = |b: &mut Builder<'_>, layers: &Layers<'_>, x: Tensor| {
        let biases = layers.biases(b);
        let product = panels::product(b, isa, Rows { weights: layers.weights(), x, segments });
        layers.split(&mut b.graph, product, &biases, |g, table| g.take_rows(table, row_experts))
    };
    let [first, last] = Layers::both(layer);
    let given = b.scope("experts.inner", |b| products(b, &first, x));
    let inner = between(&mut b.graph, layer, &given);
    let y = b.scope("experts.outer", |b| products(b, &last, inner)[0]);
    let g = &mut b.graph;
    let split = [batch, tokens, active, hidden];
    let of_tokens = if all == 1 {
        g.reshape(y, &split)
    } else {
        let flat = g.reshape(y, &[rows, hidden]);
        g.take_rows(flat, slots)
    };
    let weights = g.broadcast_in_dim(weights, &split, &[0, 1, 2]);
    let weighted = g.multiply(of_tokens, weights);
    g.reduce(weighted, Reduction::Sum, &[2])
}
