//! Which rows of a call belong to which sequence.

use crate::graph::{HostIndex, Tensor};

/// The rows of a call: `batch` times `tokens`. Ragged calls have a batch of 1.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// The position of each row in its sequence, `[batch, tokens]`.
    pub(crate) positions: Tensor,
    /// How rows are divided among sequences.
    pub(crate) division: Division,
}

/// How the rows of a call are divided among sequences.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Division {
    /// Sequences of any length follow each other, in the first row of the batch.
    Ragged {
        /// The first row of each sequence, and the end of the last one, `[sequences + 1]`.
        begins: Tensor,
        /// The position of each sequence's first row, `[sequences]`.
        starts: Tensor,
    },
    /// Each row of the batch is a sequence.
    Uniform {
        /// One past the last position of all rows. A whole text has none: it attends to itself.
        end: Option<HostIndex>,
    },
    /// Each row of the batch is a sequence, and kernels of GPUs attend in place.
    InPlace,
}

/// The pages of a pool that a call reads and writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageTable {
    /// The pages of each sequence, `[sequences, pages]`.
    pub(crate) pages: Tensor,
    /// Pages of each sequence before the first one of the table, `[sequences]`.
    pub(crate) first_pages: Option<Tensor>,
    /// In a uniform call, where each row's keys and values go, `[rows]`.
    pub(crate) slots: Option<Tensor>,
}
