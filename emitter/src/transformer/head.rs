//! The head: logits and the next token, or an embedding.

use mlxcel_artifacts::entry::ResultKind;
use mlxcel_models::{Head, Linear, Logits, ModelConfig};
use safetensors::Dtype;

use super::best::rows_grid;
use crate::{
    graph::Tensor,
    kernels::{Argmax, BestToken, Isa},
    layers::{builder::Builder, linear::linear},
    types::TensorType,
};

/// Computes the next tokens and the logits of the last hidden states of `selected` rows, `[1, selected, hidden]`.
pub(super) fn head(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    selected: usize,
    x: Tensor,
) -> Vec<(ResultKind, Tensor)> {
    let Head::Logits(layer) = &model.head else { return Vec::new() };
    let product = layer.effective_linear(&model.embedding);
    let shape = [selected, model.vocab];
    let (next, logits) = match (b.numerics.cpu_isa(), b.numerics.gpu) {
        (None, Some(isa)) => {
            let logits = b.scope("head", |b| linear(b, ("lm_head", &product), x));
            let logits = b.graph.reshape(logits, &shape);
            b.scope("argmax", |b| scaled_argmax(b, isa, layer, logits, shape))
        }
        (cpu_isa, _) => {
            let logits = b.scope("head", |b| logits(b, layer, &product, x));
            let logits = b.graph.reshape(logits, &shape);
            (b.scope("argmax", |b| argmax(b, cpu_isa, logits)), logits)
        }
    };
    vec![(ResultKind::NextToken, next), (ResultKind::Logits, logits)]
}

/// Computes the logits of the last hidden state.
fn logits(b: &mut Builder<'_>, layer: &Logits, product: &Linear, x: Tensor) -> Tensor {
    let logits = linear(b, ("lm_head", product), x);
    let scaled = b.graph.scale(logits, layer.scale);
    let scaled = layer.soft_cap.map_or(scaled, |cap| b.graph.soft_cap(scaled, cap));
    // Fused with argmax, all logits exceed IREE's stack limit.
    if scaled == logits { logits } else { b.graph.barrier(scaled) }
}

/// Returns the token with the largest logit of each row of `[rows, vocab]`, and the logits, which a GPU's kernel scales.
fn scaled_argmax(
    b: &mut Builder<'_>,
    isa: Isa,
    layer: &Logits,
    logits: Tensor,
    shape: [usize; 2],
) -> (Tensor, Tensor) {
    let (argmax, grid) = Argmax::of(logits, shape, (layer.scale, layer.soft_cap));
    let made = b.module.call(&mut b.graph, isa, argmax, grid);
    let is_scaled = Argmax::changes(layer.scale, layer.soft_cap);
    (made[0], if is_scaled { made[2] } else { logits })
}

/// Returns the token with the largest logit of each row of `[rows, vocab]`.
///
/// Generated code uses one small workgroup, computes all rows, and does not compile if it is fused with the scaling of
/// logits.
fn argmax(b: &mut Builder<'_>, cpu_isa: Option<Isa>, logits: Tensor) -> Tensor {
    let &[rows, vocab] = b.graph.shape(logits) else { return logits };
    let next = TensorType::new(Dtype::I32, [rows]);
    match cpu_isa {
        Some(isa) => {
            let count = b.lengths(1, rows);
            let best = BestToken { logits, count, next, vocab };
            b.module.call(&mut b.graph, isa, best, rows_grid(rows, vocab))[0]
        }
        None => b.graph.argmax(logits),
    }
}
