//! The contract between the engine and the device that runs the model: rows in, tokens out, over pages of cache.

use mlxcel_artifacts::{
    Digest,
    entry::{CallSizes, PAGE},
};

use crate::{
    device::DeviceInfo,
    error::{EngineError, Error},
    trace::Trace,
};

/// Limits of a [`ModelRunner`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelLimits {
    /// The digest of the bundle's manifest: keys of pages depend on it.
    pub model: Digest,
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
    /// The bytes of a page.
    pub page_bytes: usize,
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
#[derive(Debug, Clone)]
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
    /// The id with the largest logit, the lowest on a tie. If a logit is NaN, the size of the vocabulary.
    pub token: u32,
}

/// The most likely tokens after a row, and what all tokens weigh together.
#[derive(Debug, Clone, PartialEq)]
pub struct BestTokens {
    /// Their ids, the most likely first, and of equal ones the lowest.
    pub ids: Vec<u32>,
    /// Their logits.
    pub logits: Vec<f32>,
    /// The logarithm of the sum of the exponentials of all logits. NaN if one of them is.
    pub log_sum_exp: f32,
}

/// A model on a device.
pub trait ModelRunner {
    /// Returns the limits of calls and of the cache.
    fn limits(&self) -> &ModelLimits;

    /// Returns what the model runs on.
    fn device(&self) -> &DeviceInfo;

    /// Returns whether the device is the host's processors, so that other threads hardly run while it computes.
    fn is_host(&self) -> bool {
        false
    }

    /// Runs the rows. Returns one result for each selected row, in order.
    ///
    /// # Errors
    /// The device fails. Positions of the batch's rows may have been written.
    fn step(&mut self, batch: &Batch<'_>) -> Result<Vec<SelectedRow>, Error> {
        self.begin(batch)?;
        self.end()
    }

    /// Begins to run the rows, which [`end`](Self::end) waits for. Every step that was begun before has ended. What is known of
    /// the rows of the last one is dropped.
    ///
    /// # Errors
    /// As [`step`](Self::step). Then there is nothing to end.
    fn begin(&mut self, batch: &Batch<'_>) -> Result<(), Error>;

    /// Begins the step after the one that was begun, before that has ended. Returns whether the device can. What is known of the
    /// rows of the last step that ended is dropped in any case.
    ///
    /// It has the same size and as many rows, all of them selected, in both steps. Each row has the token that is found for
    /// the row in its place, whatever the batch says; one without a token has any. The device runs both in order, so that
    /// what is begun later may use pages again that these steps write.
    ///
    /// # Errors
    /// The device fails. The step that was begun first is still to be ended.
    fn begin_next(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        let _ = batch;
        Ok(false)
    }

    /// Waits for the step that was begun first. Returns one result for each selected row, in order.
    ///
    /// # Errors
    /// As [`step`](Self::step). The step has ended all the same.
    fn end(&mut self) -> Result<Vec<SelectedRow>, Error>;

    /// Reads the logits of a selected row of the last step that ended, by its index in the result.
    ///
    /// # Errors
    /// The device fails.
    fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error>;

    /// Reads the most likely tokens of a selected row of the last step that ended; `None` if the device does not find them.
    ///
    /// # Errors
    /// The device fails.
    fn best(&mut self, selected: usize) -> Result<Option<BestTokens>, Error> {
        let _ = selected;
        Ok(None)
    }

    /// Measures how many bytes per second a GPU reads and writes when it copies its own memory; `None` if there is no GPU, or no
    /// memory left to copy.
    ///
    /// # Errors
    /// The device fails.
    fn copy_bandwidth(&self) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    /// Returns the timeline on which the device is recorded; off if it is not.
    fn trace(&self) -> Trace {
        Trace::off()
    }

    /// Starts recording what the device does.
    ///
    /// # Errors
    /// The device does not tell of its dispatches, as by default, or is recorded already.
    fn start_trace(&mut self, trace: &Trace) -> Result<(), Error> {
        let _ = trace;
        Err(Error::NoProfile { device: self.device().name.clone() })
    }

    /// Stops recording, if the device is recorded.
    fn end_trace(&mut self) {}
}

impl<R: ModelRunner + ?Sized> ModelRunner for Box<R> {
    fn limits(&self) -> &ModelLimits {
        (**self).limits()
    }

    fn device(&self) -> &DeviceInfo {
        (**self).device()
    }

    fn is_host(&self) -> bool {
        (**self).is_host()
    }

    fn begin(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        (**self).begin(batch)
    }

    fn begin_next(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        (**self).begin_next(batch)
    }

    fn end(&mut self) -> Result<Vec<SelectedRow>, Error> {
        (**self).end()
    }

    fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
        (**self).logits(selected)
    }

    fn best(&mut self, selected: usize) -> Result<Option<BestTokens>, Error> {
        (**self).best(selected)
    }

    fn copy_bandwidth(&self) -> Result<Option<f64>, Error> {
        (**self).copy_bandwidth()
    }

    fn trace(&self) -> Trace {
        (**self).trace()
    }

    fn start_trace(&mut self, trace: &Trace) -> Result<(), Error> {
        (**self).start_trace(trace)
    }

    fn end_trace(&mut self) {
        (**self).end_trace();
    }
}

impl ModelLimits {
    /// Checks that requests can be run with these limits.
    ///
    /// # Errors
    /// There is no context, no vocabulary, no pool, a window of 0, or no size for a row whose logits are wanted.
    pub fn check(&self) -> Result<(), Error> {
        let Self { model: _, context, vocab, pools, steps, exact: _ } = self;
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

    /// Returns the most sequences that one call continues.
    #[must_use]
    pub fn sequences(&self) -> usize {
        let sizes = self.steps.iter().filter(|size| size.selected > 0 && size.rows_of_a_sequence() > 0);
        sizes.map(|size| size.sequences.min(size.rows)).max().unwrap_or(1)
    }

    /// Returns the most rows of a sequence in one call.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.steps.iter().map(|size| size.rows_of_a_sequence()).max().unwrap_or(1)
    }

    /// Returns the bytes of all pages, or the largest number if there are more.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.bytes(pool.pages)).fold(0, u64::saturating_add)
    }

    /// Checks that `tokens` are of the vocabulary and fit the context.
    ///
    /// # Errors
    /// There are no tokens, an id is outside the vocabulary, or there are more than positions.
    pub fn check_prompt(&self, tokens: &[u32]) -> Result<(), Error> {
        check_prompt(self.context, self.vocab, tokens)
    }
}

impl PoolLimits {
    /// Returns the bytes of so many pages, or the largest number if there are more: a manifest may say anything.
    pub(crate) fn bytes(&self, pages: usize) -> u64 {
        (pages as u64).saturating_mul(self.page_bytes as u64)
    }

    /// Returns the most pages that a sequence of so many positions holds at a time, if a call has at most `rows` of it.
    #[must_use]
    pub fn needed(&self, positions: usize, rows: usize) -> usize {
        let all = positions.div_ceil(PAGE);
        // The rows of a call see `window + rows - 1` positions, and these begin anywhere in a page.
        let seen = |window: usize| window.saturating_add(rows).saturating_add(PAGE - 3) / PAGE + 1;
        self.window.map_or(all, |window| all.min(seen(window)))
    }
}

/// Checks that `tokens` are of a vocabulary of `vocab` ids and fit a context of `context` positions.
///
/// # Errors
/// There are no tokens, an id is outside the vocabulary, or there are more than positions.
pub fn check_prompt(context: usize, vocab: usize, tokens: &[u32]) -> Result<(), Error> {
    if tokens.is_empty() {
        return Err(Error::NoTokens);
    }
    if let Some(index) = tokens.iter().position(|&token| token as usize >= vocab) {
        return Err(Error::TokenOutOfRange { token: tokens[index], index, vocab });
    }
    if tokens.len() > context {
        return Err(Error::TooLong { tokens: tokens.len(), context });
    }
    Ok(())
}
