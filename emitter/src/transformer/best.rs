//! The best tokens of rows of logits, and the logarithm of the sum of their exponentials.

mod generated;

use mlxcel_artifacts::entry::{ResultKind, best_count};
use safetensors::Dtype;

use crate::{
    graph::Tensor,
    kernels::{BestTokens, Grid, Isa},
    layers::builder::Builder,
    types::TensorType,
};

/// Logits of a workgroup, if its rows are not longer: fewer would not be worth a workgroup.
const WORKGROUP_LOGITS: usize = 8192;

/// Computes the results of an entry for `logits`, `[rows, vocab]`, of which the first `count` rows are wanted.
pub(super) fn best(b: &mut Builder<'_>, logits: Tensor, count: Tensor) -> Vec<(ResultKind, Tensor)> {
    let results = match b.numerics.cpu_isa() {
        Some(isa) => kernel(b, isa, logits, count),
        None => b.scope("best", |b| generated::best(&mut b.graph, logits)),
    };
    [ResultKind::BestTokens, ResultKind::BestLogits, ResultKind::LogSumExp].into_iter().zip(results).collect()
}

fn kernel(b: &mut Builder<'_>, isa: Isa, logits: Tensor, count: Tensor) -> Vec<Tensor> {
    let &[rows, vocab] = b.graph.shape(logits) else { return vec![logits; 3] };
    let best = best_count(vocab);
    let call = BestTokens {
        logits,
        count,
        tokens: TensorType::new(Dtype::I32, [rows, best]),
        best_logits: TensorType::new(Dtype::F32, [rows, best]),
        log_sum_exp: TensorType::new(Dtype::F32, [rows]),
        vocab,
        best,
    };
    b.module.call(&mut b.graph, isa, call, rows_grid(rows, vocab))
}

/// Divides rows of logits among workgroups of a CPU.
pub(super) fn rows_grid(rows: usize, vocab: usize) -> Grid {
    Grid { items: rows, grain: (WORKGROUP_LOGITS / vocab.max(1)).clamp(1, rows.max(1)) }
}
