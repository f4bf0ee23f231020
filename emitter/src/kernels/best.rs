//! Calls of `best.c`.

use super::arguments::{arguments, kernels};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Finds the `best` tokens of each row of `vocab` logits, and the logarithm of the sum of its exponentials.
    struct BestTokens {
        logits: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        tokens: TensorType,
        best_logits: TensorType,
        log_sum_exp: TensorType,
        vocab: usize,
        best: usize,
    }
}

arguments! {
    /// Finds the token with the largest of `vocab` logits in each row.
    struct BestToken {
        logits: Tensor,
        /// The number of rows that are wanted.
        count: Tensor,
        next: TensorType,
        vocab: usize,
    }
}

kernels! {
    BestTokens => "best", "best_tokens";
    BestToken => "best", "best_token";
}
