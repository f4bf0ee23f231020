//! The contract between the engine and the device that runs the model: rows in, tokens out, over pages of cache.

use mlxcel_artifacts::entry::CallSizes;

use crate::error::{EngineError, Error};

/// Limits of a [`ModelRunner`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelLimits {
    /// The largest number of positions of a sequence.
    pub context: usize,
    /// The size of the vocabulary: token ids are below it.
    pub vocab: usize,
    /// The pools of pages, one for each window size of the model's layers.
    pub pools: Vec<PoolLimits>,
    /// What a call can take. Any order.
    pub steps: Vec<CallSizes>,
    /// True if the result of a row has the same bits whatever the other rows are and however a prompt is cut.
    pub exact: bool,
}

/// A pool of pages: the cache of all layers with one window size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// Positions that a row sees, itself included; `None` for all before it.
    pub window: Option<usize>,
    /// Pages for sequences: their ids are 1 to this number. Page 0 is never given to a sequence.
    pub pages: usize,
}

/// The rows of one call.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The index of the call's size in [`ModelLimits::steps`].
    pub size: usize,
    /// The sequences, at least one, each with at least one row.
    pub sequences: Vec<SequenceRows<'a>>,
}

/// The rows of a sequence in a [`Batch`].
///
/// A call writes the positions of its rows and no others, and a row sees no position after its own. So a position that
/// was written by a rejected draft, or by a call that failed, is written again before anything reads it.
#[derive(Debug)]
pub struct SequenceRows<'a> {
    /// The tokens, one for each row.
    pub tokens: Vec<u32>,
    /// The position of the first token.
    pub start: usize,
    /// For each pool, the page of positions `64 * index` to `64 * index + 63`. 0 if all of these are behind the window.
    pub pages: Vec<&'a [u32]>,
    /// Indices of the rows whose logits are wanted, ascending.
    pub selected: Vec<usize>,
}

/// The result of a selected row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedRow {
    /// The id with the largest logit, the lowest on a tie.
    pub token: u32,
}

/// A model on a device.
pub trait ModelRunner {
    /// Returns the limits of calls and of the cache.
    fn limits(&self) -> &ModelLimits;

    /// Runs the rows. Returns one result for each selected row, in order.
    ///
    /// # Errors
    /// The device fails. Positions of the batch's rows may have been written.
    fn step(&mut self, batch: &Batch<'_>) -> Result<Vec<SelectedRow>, Error>;

    /// Reads the logits of a selected row of the last step, by its index in the result.
    ///
    /// # Errors
    /// The device fails.
    fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error>;
}

impl ModelLimits {
    /// Checks that requests can be run with these limits.
    ///
    /// # Errors
    /// There is no context, no vocabulary, no pool, a window of 0, or no size for a row whose logits are wanted.
    pub fn check(&self) -> Result<(), Error> {
        let Self { context, vocab, pools, steps, exact: _ } = self;
        let refuse = |found: String, expected| Err(EngineError::BadLimits { found, expected }.into());
        if *context == 0 || *vocab == 0 {
            return refuse(
                format!("a context of {context} and a vocabulary of {vocab}"),
                "at least 1 of each",
            );
        }
        if pools.is_empty() {
            return refuse("no pool of pages".to_owned(), "one for each window size");
        }
        if pools.iter().any(|pool| pool.window == Some(0)) {
            return refuse("a window of 0".to_owned(), "none, or at least 1");
        }
        if steps.iter().all(|size| size.rows_of_a_sequence() == 0 || size.selected == 0) {
            return refuse(format!("{} sizes of a step", steps.len()), "one with a selected row");
        }
        Ok(())
    }
}
