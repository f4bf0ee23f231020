//! The types of entries for the best tokens.

use safetensors::Dtype;

use super::{ArgumentKind, ResultKind};

/// The most tokens that an entry of [`Role::Best`](super::Role::Best) finds for each row of logits.
pub const BEST: usize = 64;

/// Returns how many tokens such an entry finds in a vocabulary: [`BEST`], or all if there are fewer.
#[must_use]
pub fn best_count(vocab: usize) -> usize {
    vocab.min(BEST)
}

/// Returns the type of an argument for `rows` of logits, or `None` if there is no such argument.
pub(super) fn argument(kind: ArgumentKind, rows: usize, vocab: usize) -> Option<(Dtype, Vec<usize>)> {
    match kind {
        ArgumentKind::Logits => Some((Dtype::F32, vec![rows, vocab])),
        ArgumentKind::SelectedCount => Some((Dtype::I32, vec![1])),
        _ => None,
    }
}

/// Returns the type of a result for `rows` of logits, or `None` if there is no such result.
pub(super) fn result(kind: ResultKind, rows: usize, vocab: usize) -> Option<(Dtype, Vec<usize>)> {
    match kind {
        ResultKind::BestTokens => Some((Dtype::I32, vec![rows, best_count(vocab)])),
        ResultKind::BestLogits => Some((Dtype::F32, vec![rows, best_count(vocab)])),
        ResultKind::LogSumExp => Some((Dtype::F32, vec![rows])),
        _ => None,
    }
}
