//! Mixtures by kernels on GPUs: of a single token, and of several, whose rows are sorted by expert.

use mlxcel_models::Experts;
use safetensors::Dtype;

use super::{gpu_rows, linears::ExpertLinears, stack::matrices};
use crate::{
    graph::Tensor,
    kernels::{CudaExpertsAdd, CudaExpertsGated, F32Bits, Isa, MAX_ACTIVE, MAX_EXPERTS, PairedRows},
    layers::{
        builder::Builder,
        linear::{gating, row, row_weights},
    },
    types::TensorType,
};

/// Computes `[batch, tokens, hidden]` to the same shape, if there are kernels for it.
pub(super) fn experts(b: &mut Builder<'_>, layer: &Experts, logits: Tensor, x: Tensor) -> Option<Tensor> {
    let isa = b.numerics.gpu?;
    let &[batch, tokens, hidden] = b.graph.shape(x) else { return None };
    let linears = ExpertLinears::up_and_down(layer);
    let [up, down] = &linears;
    let rows = up.paired_rows()?;
    let inner = up.weights().size().0 / 2;
    let reads = is_readable(b, up, hidden) && is_readable(b, down, inner);
    if !reads || layer.experts.len() > MAX_EXPERTS || layer.active > MAX_ACTIVE {
        return None;
    }
    match batch * tokens {
        1 => of_a_token(b, isa, (layer, &linears, rows), logits, x),
        _ => gpu_rows::of_tokens(b, isa, (layer, &linears, rows), logits, x),
    }
}

/// Computes the mixture of one token, `[1, 1, hidden]`.
fn of_a_token(
    b: &mut Builder<'_>,
    isa: Isa,
    (layer, [up, down], rows): (&Experts, &[ExpertLinears<'_>; 2], PairedRows),
    logits: Tensor,
    x: Tensor,
) -> Option<Tensor> {
    let (first, count, active) = (layer.experts.first()?, layer.experts.len(), layer.active);
    let (hidden, inner) = (down.weights().size().0, down.weights().size().1);
    let logits = b.graph.reshape(logits, &[count]);
    let row = row(b, x);
    let (activation, gate) = gating(first);
    let [up, down] = [up, down].map(|layers| matrices(b, layers, count, logits));
    let gated = CudaExpertsGated {
        row,
        inputs: hidden,
        logits,
        experts: count,
        active,
        normalized: layer.normalized,
        matrices: up?,
        rows,
        activation,
        gate,
    };
    let grid = gated.grid();
    let made = b.scope("experts.inner", |b| b.module.call(&mut b.graph, isa, gated, grid));
    let &[x, token_experts, token_shares] = made.as_slice() else { return None };
    let sum = CudaExpertsAdd {
        x,
        inputs: active * inner,
        token_experts,
        token_shares,
        active,
        matrices: down?,
        residual: b.graph.full(0.0, Dtype::F32, &[hidden]),
        out: TensorType::new(Dtype::F32, [hidden]),
        factor: F32Bits(1.0),
    };
    let grid = sum.grid();
    let y = b.scope("experts.outer", |b| b.module.call(&mut b.graph, isa, sum.clone(), grid)[0]);
    let y = b.graph.reshape(y, &[1, 1, hidden]);
    b.expert_sums.insert(y, sum);
    Some(y)
}

/// Returns whether kernels read the weights of all experts, which have so many inputs.
fn is_readable(b: &Builder<'_>, layers: &ExpertLinears<'_>, inputs: usize) -> bool {
    let mut read = layers.weights().tensors().into_iter().map(|weight| row_weights(b, weight));
    let first = read.next().flatten();
    let is_known = first.is_some_and(|weights| inputs.is_multiple_of(weights.vector()));
    is_known && read.all(|weights| weights == first) && layers.has_one_table()
}
