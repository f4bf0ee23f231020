//! Limits of an encoder, and the device it runs on.

use crate::{error::Error, model::check_prompt};

/// Limits of an encoder, and the device it runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Tokens of the longest text.
    pub context: usize,
    /// The size of the vocabulary: token ids are below it.
    pub vocab: usize,
    /// Rows of calls, ascending.
    pub prefill: Vec<usize>,
    /// The bundle's target that runs.
    pub target: String,
    /// The device, for messages: `local-task, 2 threads`.
    pub device: String,
    /// CPU threads that compute; 1 if another device computes.
    pub threads: usize,
    /// True if loading packed the weights for the device, which [`pack`](crate::pack) does once, ahead of time.
    pub packed_at_load: bool,
}

/// Checks that `tokens` can be embedded.
///
/// # Errors
/// There are no tokens, an id is outside the vocabulary, or there are more than positions.
pub fn check_append(capabilities: &Capabilities, _position: usize, tokens: &[u32]) -> Result<(), Error> {
    check_prompt(capabilities.context, capabilities.vocab, tokens)
}
