//! The logits of a known text.

use std::cmp::Reverse;

use mlxcel_artifacts::entry::PAGE;

use super::{core::Engine, prefix::PageKeys};
use crate::{
    error::{EngineError, Error},
    model::{Batch, ModelRunner, SequenceRows},
};

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
        let limits = self.limits();
        limits.check_prompt(text)?;
        if from >= text.len() {
            return Err(Error::NoTokens);
        }
        self.memory.check(text.len())?;
        let keys = PageKeys::new(self.limits().model, text);
        let keys = if self.settings.prefix_cache { keys.as_slice() } else { &[] };
        let known = keys.len().min(from / PAGE);
        let Some(mut lease) = self.memory.admit(&keys[..known], text.len()) else {
            return Err(EngineError::Busy { running: self.usage().running }.into());
        };
        let (mut position, mut logits) = (lease.cached, Vec::with_capacity(text.len() - from));
        let mut result = Ok(());
        while position < text.len() && result.is_ok() {
            let (size, rows) = self.piece(position, text.len(), from);
            let end = position + rows;
            self.memory.grow(&mut lease, end);
            let selected: Vec<usize> = (from.max(position)..end).map(|index| index - position).collect();
            let count = selected.len();
            let tokens = text[position..end].to_vec();
            let rows = SequenceRows { tokens, start: position, pages: lease.pages(), selected };
            result = self.runner.step(&Batch { size, sequences: vec![rows] }).map(drop);
            for row in 0..count {
                if result.is_ok() {
                    result = self.runner.logits(row).map(|row| logits.push(row));
                }
            }
            if result.is_ok() {
                self.memory.commit(&mut lease, keys, end);
            }
            position = end;
        }
        self.memory.free(lease);
        result.map(|()| logits)
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
