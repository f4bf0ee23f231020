//! The logits of a known text.

use std::{cmp::Reverse, fmt};

use mlxcel_artifacts::entry::PAGE;

use super::{core::Engine, memory::Lease, prefix::PageKeys};
use crate::{
    error::{EngineError, Error},
    model::{Batch, ModelRunner, SequenceRows},
    sampling::{TokenLogprobs, logprobs},
};

/// A text whose logits are computed piece by piece.
pub(super) struct Scoring {
    text: Vec<u32>,
    /// The index of the first token after which logits are wanted.
    from: usize,
    keys: Option<PageKeys>,
    lease: Lease,
    /// Tokens that were run.
    position: usize,
}

impl<R: ModelRunner> Engine<R> {
    /// Returns the logits after each token of `text` from index `from` on, one row of the vocabulary for each.
    ///
    /// Tokens before `from` are run unless pages of an earlier call or request have them. So a long text can be scored in
    /// pieces, as long as its pages stay.
    ///
    /// # Errors
    /// The text does not fit the context or the cache, `from` is not in it, other requests have the pages, or the device
    /// fails.
    pub fn score(&mut self, text: &[u32], from: usize) -> Result<Vec<Vec<f32>>, Error> {
        let mut logits = Vec::with_capacity(text.len().saturating_sub(from));
        let mut scoring = self.begin_score(text, from)?;
        let result = self.run_score(&mut scoring, &mut |_, row| {
            logits.push(row);
            Ok(())
        });
        self.end_score(scoring);
        result.map(|()| logits)
    }

    /// Returns the log-probability of each token of `text` from index `from` on, given all tokens before it, with the `top`
    /// most likely ids in its place. `from` is at least 1: nothing says how likely the first token is.
    ///
    /// # Errors
    /// As [`Engine::score`].
    pub fn token_logprobs(
        &mut self,
        text: &[u32],
        from: usize,
        top: usize,
    ) -> Result<Vec<TokenLogprobs>, Error> {
        let mut found = Vec::with_capacity(text.len().saturating_sub(from));
        let mut scoring = self.begin_token_logprobs(text, from)?;
        let result = self.run_score(&mut scoring, &mut |index, row| {
            found.push(logprobs(&row, text[index + 1], top)?);
            Ok(())
        });
        self.end_score(scoring);
        result.map(|()| found)
    }

    /// Takes the pages for what [`Engine::token_logprobs`] runs.
    pub(super) fn begin_token_logprobs(&mut self, text: &[u32], from: usize) -> Result<Scoring, Error> {
        self.limits().check_prompt(text)?;
        check_range(text, from)?;
        self.begin_score(&text[..text.len() - 1], from - 1)
    }

    /// Takes the pages of a text.
    fn begin_score(&mut self, text: &[u32], from: usize) -> Result<Scoring, Error> {
        let limits = self.limits();
        limits.check_prompt(text)?;
        if from >= text.len() {
            return Err(Error::NoTokens);
        }
        self.memory.check(text.len())?;
        let keys = self.settings.prefix_cache.then(|| PageKeys::new(self.limits().model, text));
        let known = keys.as_ref().map_or(&[][..], PageKeys::as_slice);
        let known = &known[..known.len().min(from / PAGE)];
        let Some(lease) = self.memory.admit(known, text.len()) else {
            return Err(EngineError::Busy { running: self.usage().running }.into());
        };
        let position = lease.cached;
        Ok(Scoring { text: text.to_vec(), from, keys, lease, position })
    }

    fn run_score(
        &mut self,
        scoring: &mut Scoring,
        on_row: &mut dyn FnMut(usize, Vec<f32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while !scoring.is_done() {
            self.step_score(scoring, on_row)?;
        }
        Ok(())
    }

    /// Runs the next piece of a text. `on_row` gets the index of each token from `from` on, and the logits after it.
    pub(super) fn step_score(
        &mut self,
        scoring: &mut Scoring,
        on_row: &mut dyn FnMut(usize, Vec<f32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.settle();
        let Scoring { text, from, keys, lease, position } = scoring;
        let (size, rows) = self.piece(*position, text.len(), *from);
        let end = *position + rows;
        self.memory.grow(lease, end);
        let selected: Vec<usize> = ((*from).max(*position)..end).collect();
        let tokens = text[*position..end].to_vec();
        let rows = SequenceRows {
            tokens,
            start: *position,
            pages: lease.pages(),
            selected: selected.iter().map(|index| index - *position).collect(),
        };
        self.runner.step(&Batch { size, sequences: vec![rows] })?;
        for (row, index) in selected.into_iter().enumerate() {
            on_row(index, self.runner.logits(row)?)?;
        }
        self.memory.commit(lease, keys.as_ref().map_or(&[], PageKeys::as_slice), end);
        *position = end;
        Ok(())
    }

    /// Gives the pages of a text back.
    pub(super) fn end_score(&mut self, scoring: Scoring) {
        self.memory.free(scoring.lease);
    }

    /// Returns the size of the next call and how many rows it has: the most that fit.
    fn piece(&self, position: usize, end: usize, from: usize) -> (usize, usize) {
        let steps = &self.limits().steps;
        let rows = |index: &usize| {
            let size = steps[*index];
            let most = size.rows_of_a_sequence().min(self.memory.rows()).min(end - position);
            // Rows before `from` are not selected.
            most.min(from.saturating_sub(position) + size.selected)
        };
        // The smallest of those that take as many.
        let best = (0..steps.len()).max_by_key(|index| (rows(index), Reverse(steps[*index].rows)));
        // The limits have a step with a selected row, see `ModelLimits::check`.
        best.map_or((0, 0), |index| (index, rows(&index)))
    }
}

/// Checks that there are tokens from index `from` on, and another one before them.
pub(super) fn check_range(text: &[u32], from: usize) -> Result<(), Error> {
    if from == 0 || from >= text.len() {
        return Err(EngineError::NothingToScore { from, tokens: text.len() }.into());
    }
    Ok(())
}

impl Scoring {
    /// Returns whether all tokens were run.
    pub(super) fn is_done(&self) -> bool {
        self.position >= self.text.len()
    }
}

impl fmt::Debug for Scoring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoring").field("position", &self.position).finish_non_exhaustive()
    }
}
