//! What a step runs.

use super::request::RequestId;

/// What one call of the device runs.
#[derive(Debug)]
pub(super) struct Step {
    /// The index of its size.
    pub(super) size: usize,
    /// What it runs of each request, in the order of these.
    pub(super) parts: Vec<Part>,
}

/// What a step runs of one request.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) id: RequestId,
    pub(super) rows: usize,
    /// The rows whose logits are wanted.
    pub(super) selected: usize,
    /// The tokens of its last rows, which are guesses.
    pub(super) drafts: Vec<u32>,
    pub(super) has_turn: bool,
}

impl Step {
    /// Returns the rows of all requests.
    pub(super) fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }
}
