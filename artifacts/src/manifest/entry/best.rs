//! How many of the best tokens an entry finds.

/// The most tokens that an entry of [`Role::Best`](super::Role::Best) finds for each row of logits.
pub const BEST: usize = 64;

/// Returns how many tokens such an entry finds in a vocabulary: [`BEST`], or all if there are fewer.
#[must_use]
pub fn best_count(vocab: usize) -> usize {
    vocab.min(BEST)
}
