//! Grammars: what an answer must be, token by token.

use std::{fmt, ops::Deref, sync::Arc};

use crate::error::Error;

/// What an answer must be, such as JSON of a schema. Requests can share one.
pub trait Grammar: fmt::Debug + Send + Sync {
    /// Begins an answer.
    ///
    /// # Errors
    /// The grammar cannot be used.
    fn begin(&self) -> Result<Box<dyn GrammarState>, Error>;
}

/// An answer under construction.
///
/// The engine calls [`prepare`](Self::prepare) before a step and [`allowed`](Self::allowed) after it, so that an
/// implementation can compute the mask on another thread while the device runs.
pub trait GrammarState: fmt::Debug + Send {
    /// Begins to compute which tokens may follow.
    fn prepare(&mut self) {}

    /// Returns which tokens may follow: bit `id % 32` of word `id / 32`. Ids past the last word may not.
    ///
    /// # Errors
    /// It cannot be computed. The request ends with the error, so that no answer is outside the grammar.
    fn allowed(&mut self) -> Result<&[u32], Error>;

    /// Adds a token to the answer. Returns true if the answer is complete and nothing may follow, not even an end of text.
    ///
    /// # Errors
    /// The token is not allowed.
    fn accept(&mut self, token: u32) -> Result<bool, Error>;
}

/// A [`Grammar`] that requests share. Two are equal if they are the same one.
#[derive(Debug, Clone)]
pub struct SharedGrammar(Arc<dyn Grammar>);

impl SharedGrammar {
    /// Shares a grammar.
    #[must_use]
    pub fn new(grammar: impl Grammar + 'static) -> Self {
        Self(Arc::new(grammar))
    }
}

impl Deref for SharedGrammar {
    type Target = dyn Grammar;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for SharedGrammar {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Returns whether a mask allows a token.
pub(super) fn allows(mask: &[u32], token: u32) -> bool {
    mask.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
}
