//! A request on its way: its text so far, its pages and its random stream.

use std::ops::Range;

use mlxcel_artifacts::{Digest, entry::PAGE};

use super::{
    chooser::{Chooser, Picked},
    generation::{StopReason, Timings},
    memory::{Lease, Memory},
    prefix::PageKeys,
    request::{Request, RequestId},
    schedule::Want,
};
use crate::model::SequenceRows;

/// A request that waits or runs.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    pub(super) request: Request,
    pub(super) chooser: Chooser,
    pub(super) timings: Timings,
    /// The step of its last turn, or in which it was admitted.
    pub(super) served: u64,
    pub(super) lease: Lease,
    /// The prompt and the answer so far.
    text: Vec<u32>,
    /// Tokens of the text that are in the pages.
    computed: usize,
    /// Keys of the text's whole pages; `None` if the engine keeps no pages of earlier requests.
    keys: Option<PageKeys>,
    context: usize,
}

impl Sequence {
    pub(super) fn new(
        id: RequestId,
        request: Request,
        chooser: Chooser,
        keys: Option<PageKeys>,
        context: usize,
    ) -> Self {
        let text = request.prompt.clone();
        let (timings, lease) = (Timings::default(), Lease::default());
        Self { id, request, chooser, timings, served: 0, lease, text, computed: 0, keys, context }
    }

    /// Returns the keys of pages of its text that it can share.
    fn shared_keys(&self) -> &[Digest] {
        let keys = self.keys.as_ref().map_or(&[][..], PageKeys::as_slice);
        // The last token is always run, because its logits are wanted.
        &keys[..keys.len().min((self.text.len() - 1) / PAGE)]
    }

    /// Returns whether there are enough pages for it.
    pub(super) fn fits(&self, memory: &Memory) -> bool {
        memory.fits(self.shared_keys(), self.request.positions(self.context)).is_some()
    }

    /// Takes pages if there are enough. Returns whether it did.
    pub(super) fn admit(&mut self, memory: &mut Memory, step: u64) -> bool {
        let Some(lease) = memory.admit(self.shared_keys(), self.request.positions(self.context)) else {
            return false;
        };
        self.computed = lease.cached;
        self.timings.cached_tokens = lease.cached;
        self.lease = lease;
        self.served = step;
        true
    }

    /// Returns true until the whole prompt was run.
    pub(super) fn is_prompt(&self) -> bool {
        self.computed < self.request.prompt.len()
    }

    /// Returns guesses of the tokens after the text.
    pub(super) fn draft(&self) -> Vec<u32> {
        let Some(speculation) = self.request.speculate.filter(|_| !self.is_prompt()) else {
            return Vec::new();
        };
        // A step adds one token more than the drafts that it accepts, and the last one is not written.
        let tokens_left = self.request.max_tokens.saturating_sub(self.generated() + 1);
        speculation.draft(&self.text, tokens_left.min(self.context - self.text.len()))
    }

    pub(super) fn want(&self, drafts: usize) -> Want {
        Want {
            pending: self.text.len() - self.computed,
            drafts,
            is_prompt: self.is_prompt(),
            selects: self.request.max_tokens > 0,
            served: self.served,
        }
    }

    /// Returns the position after so many rows.
    pub(super) fn end(&self, rows: usize) -> usize {
        self.computed + rows
    }

    /// Returns the next rows: pending tokens, then drafts.
    pub(super) fn rows(&self, rows: usize, drafts: &[u32]) -> SequenceRows<'_> {
        let pending = &self.text[self.computed..];
        let tokens: Vec<u32> = pending.iter().chain(drafts).copied().take(rows).collect();
        let selected = self.selected(rows).collect();
        SequenceRows { tokens, start: self.computed, pages: self.lease.pages(), selected }
    }

    /// Returns which of the next rows are selected.
    pub(super) fn selected(&self, rows: usize) -> Range<usize> {
        let pending = self.text.len() - self.computed;
        if self.request.max_tokens > 0 { (pending - 1).min(rows)..rows } else { 0..0 }
    }

    /// Returns whether, after a row that ends the text, the next row is known but for its token, which is the one with the
    /// largest logit.
    pub(super) fn follows_itself(&self) -> bool {
        let Request { max_tokens, speculate, .. } = &self.request;
        let is_longer = self.generated() + 1 < *max_tokens && self.text.len() < self.context;
        is_longer && speculate.is_none() && self.chooser.takes_largest()
    }

    /// Returns the row after one that ends the text. Its token is not known.
    pub(super) fn next_rows(&self) -> SequenceRows<'_> {
        let (start, pages) = (self.text.len(), self.lease.pages());
        SequenceRows { tokens: vec![0], start, pages, selected: vec![0] }
    }

    /// Returns why the answer ends after `picked`, of which the last is the answer's last so far.
    pub(super) fn end_after(&self, picked: &[Picked]) -> Option<StopReason> {
        let generated = self.generated() + picked.len();
        let (token, _) = picked.last()?;
        if self.request.eos.contains(token) {
            Some(StopReason::Eos)
        } else if self.chooser.is_complete() {
            Some(StopReason::Stop)
        } else if generated >= self.request.max_tokens {
            Some(StopReason::Length)
        } else if self.request.prompt.len() + generated > self.context {
            Some(StopReason::Context)
        } else {
            None
        }
    }

    /// Adds the result of a step: `rows` were run, `picked` follows. Returns why the answer ends, if it does.
    pub(super) fn advance(
        &mut self,
        memory: &mut Memory,
        rows: usize,
        picked: &[Picked],
    ) -> Option<StopReason> {
        let end = self.end_after(picked);
        let accepted = picked.len().saturating_sub(1);
        if self.is_prompt() {
            self.timings.prompt_tokens += rows;
            self.computed += rows;
        } else {
            self.timings.steps += 1;
            self.timings.drafted += rows - 1;
            self.timings.accepted += accepted;
            self.computed += 1 + accepted;
        }
        self.text.extend(picked.iter().map(|(token, _)| token));
        if let Some(keys) = &mut self.keys {
            keys.extend(&self.text[..self.computed]);
        }
        let keys = self.keys.as_ref().map_or(&[][..], PageKeys::as_slice);
        memory.commit(&mut self.lease, keys, self.computed);
        let is_over = self.request.max_tokens == 0 && !self.is_prompt();
        end.or(is_over.then_some(StopReason::Length))
    }

    fn generated(&self) -> usize {
        self.text.len() - self.request.prompt.len()
    }
}
