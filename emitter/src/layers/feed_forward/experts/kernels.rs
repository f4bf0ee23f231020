//! Mixtures of experts by kernels.

use mlxcel_models::Experts;
use safetensors::Dtype;

use super::linears::{ExpertLinears, inner};
use crate::{
    graph::{Graph, Tensor},
    kernels::{Grid, Isa, Route},
    layers::{
        builder::Builder,
        feed_forward::activation::kernel_activate,
        linear::panels::{self, ProductInputs, Segments},
    },
    ops::Reduction,
    types::TensorType,
};

/// Computes `[batch, tokens, hidden]` to the same shape.
pub(super) fn experts(b: &mut Builder<'_>, isa: Isa, layer: &Experts, logits: Tensor, x: Tensor) -> Tensor {
    let &[batch, tokens, hidden] = b.graph.shape(x) else {
        return x;
    };
    let (all, active) = (batch * tokens, layer.active);
    let rows = all * active;
    let Some(routes) = Routes::new(b, isa, layer, logits, [batch, tokens]) else { return x };
    let g = &mut b.graph;
    let flat = g.reshape(x, &[all, hidden]);
    let taken = if all == 1 {
        let row = g.reshape(flat, &[hidden]);
        g.broadcast_in_dim(row, &[rows, hidden], &[1])
    } else {
        g.take_rows(flat, routes.row_tokens)
    };
    let x = g.reshape(taken, &[1, rows, hidden]);
    let segments = Some(routes.segments);
    let products = |b: &mut Builder<'_>, layers: &ExpertLinears<'_>, x: Tensor| {
        let biases = layers.biases(b);
        let product = panels::product(b, isa, ProductInputs { weights: layers.weights(), x, segments });
        let rows_of = |g: &mut Graph, table| g.take_rows(table, routes.row_experts);
        layers.split(&mut b.graph, product, &biases, rows_of)
    };
    let [up, down] = ExpertLinears::up_and_down(layer);
    let first = b.scope("experts.inner", |b| products(b, &up, x));
    let (Some(expert), Some(inner)) = (layer.experts.first(), inner(&first)) else { return x };
    // Rows are those of real tokens, then unused ones. How many there are of each is not worth a dispatch.
    #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
    let lengths = b.graph.full(rows as f64, Dtype::I32, &[1]);
    let inner = kernel_activate(b, isa, expert, inner, lengths);
    let y = b.scope("experts.outer", |b| products(b, &down, inner)[0]);
    let g = &mut b.graph;
    let split = [batch, tokens, active, hidden];
    let by_token = if all == 1 {
        g.reshape(y, &split)
    } else {
        let flat = g.reshape(y, &[rows, hidden]);
        g.take_rows(flat, routes.slots)
    };
    let weights = g.broadcast_in_dim(routes.weights, &split, &[0, 1, 2]);
    let weighted = g.multiply(by_token, weights);
    g.reduce(weighted, Reduction::Sum, &[2])
}

/// The experts of each token, and rows sorted by expert: the results of `route.c`.
struct Routes {
    weights: Tensor,
    slots: Tensor,
    row_tokens: Tensor,
    row_experts: Tensor,
    segments: Segments,
}

impl Routes {
    /// Chooses experts for `[batch, tokens]` by their `logits`.
    fn new(
        b: &mut Builder<'_>,
        isa: Isa,
        layer: &Experts,
        logits: Tensor,
        [batch, tokens]: [usize; 2],
    ) -> Option<Self> {
        let (experts, active) = (layer.experts.len(), layer.active);
        let rows = batch * tokens * active;
        let segments = if batch * tokens == 1 { active } else { experts };
        let lengths = b.lengths(batch, tokens);
        let by_token = |dtype| TensorType::new(dtype, [batch, tokens, active]);
        let list = |count| TensorType::new(Dtype::I32, [count]);
        let route = Route {
            logits,
            lengths,
            weights: by_token(Dtype::F32),
            slots: by_token(Dtype::I32),
            row_tokens: list(rows),
            row_experts: list(rows),
            segment_experts: list(segments),
            segment_begins: list(segments + 1),
            batch,
            tokens,
            experts,
            active,
            normalized: layer.normalized,
        };
        let results = b.module.call(&mut b.graph, isa, route, Grid { items: 1, grain: 1 });
        let &[weights, slots, row_tokens, row_experts, experts, begins] = results.as_slice() else {
            return None;
        };
        Some(Self { weights, slots, row_tokens, row_experts, segments: Segments { experts, begins } })
    }
}
