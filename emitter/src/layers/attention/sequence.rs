//! Where a call's tokens are.

use crate::graph::{HostIndex, Tensor};

/// The positions of a call's tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    /// The position of each row's first token, `[batch]`.
    pub(crate) start: Tensor,
    /// The position of each token, `[batch, tokens]`.
    pub(crate) positions: Tensor,
    /// The part of the cache that these tokens attend to.
    pub(crate) span: Span,
}

/// A part of the cache, from its start.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Span {
    /// A number of positions that is known at compile time.
    Prefix(usize),
    /// Blocks of `size` positions up to `end`.
    Blocks {
        /// One past the last position of the call.
        end: HostIndex,
        /// Positions in a block.
        size: usize,
    },
}
