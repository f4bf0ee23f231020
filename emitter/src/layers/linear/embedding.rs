//! Embedding tables.

use mlxcel_models::{Embedding, Weight};
use safetensors::Dtype;

use super::{gpu_matvec, panels, quantized};
use crate::{
    form::Form,
    graph::Tensor,
    layers::{builder::Builder, norm::norm},
    plan::Products,
};

/// Looks up token ids and adds positions and token types, see [`Embedding`]: `[batch, tokens]` to `[batch, tokens, hidden]`
/// in `f32`.
pub(crate) fn embedding(b: &mut Builder<'_>, layer: &Embedding, tokens: Tensor, positions: Tensor) -> Tensor {
    let mut rows = match gpu_matvec::rows(b, &layer.weight, tokens, layer.scale) {
        Some(rows) => rows,
        None => {
            let rows = looked_up(b, &layer.weight, tokens);
            b.graph.scale(rows, layer.scale)
        }
    };
    let is_whole = layer.positions.is_none() && layer.token_types.is_none();
    if let Some(table) = &layer.positions {
        // Padding may lie past the end of the table. Nothing reads its result.
        let last = table.shape.first().map_or(0, |rows| rows.saturating_sub(1));
        #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
        let last = b.graph.scalar(last as f64, Dtype::I32);
        let last = b.graph.broadcast_like(last, positions);
        let positions = b.graph.minimum(positions, last);
        let position_rows = take_rows(b, table, positions);
        rows = b.graph.add(rows, position_rows);
    }
    if let Some(table) = &layer.token_types {
        let shape = b.graph.shape(tokens).to_vec();
        let first = b.graph.full(0.0, Dtype::I32, &shape);
        let type_rows = take_rows(b, table, first);
        rows = b.graph.add(rows, type_rows);
    }
    // Fused with the first norm, the gathered rows exceed IREE's stack limit. What a kernel made is whole; on a CPU, a barrier
    // would have the host wait for it.
    let is_of_kernel = b.numerics.gpu.is_some() || b.numerics.cpu_isa().is_some();
    let rows = if is_whole && is_of_kernel { rows } else { b.graph.barrier(rows) };
    layer.norm.as_ref().map_or(rows, |layer| b.scope("norm", |b| norm(b, layer, rows)))
}

/// Looks up rows of the table, in `f32`.
fn looked_up(b: &mut Builder<'_>, weight: &Weight, tokens: Tensor) -> Tensor {
    match (b.numerics.products, b.form(weight)) {
        (Products::Kernels(isa), _) => panels::rows(b, isa, weight, tokens),
        (Products::Native | Products::Widened, Form::Floats) => take_rows(b, weight, tokens),
        (_, Form::Rows | Form::Groups(_)) => quantized::rows(b, weight, tokens),
    }
}

/// Looks up rows of a table that is stored as in the checkpoint, in `f32`.
fn take_rows(b: &mut Builder<'_>, weight: &Weight, indices: Tensor) -> Tensor {
    let table = b.stored(weight);
    let rows = b.graph.take_rows(table, indices);
    b.widen(weight, rows, Dtype::F32)
}
