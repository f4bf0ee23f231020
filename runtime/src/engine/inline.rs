//! One request on the caller's thread.

use std::ops::ControlFlow;

use mlxcel_artifacts::Cancel;

use super::{
    core::Engine,
    generation::{Generation, StopReason},
    request::{EventKind, Request},
};
use crate::{error::Error, model::ModelRunner};

impl<R: ModelRunner> Engine<R> {
    /// Returns the most positions of a request: the model's context, or fewer if the cache has room for fewer.
    #[must_use]
    pub fn context(&self) -> usize {
        self.limits().context.min(self.memory.positions())
    }

    /// Returns the most tokens of an answer that has no limit of its own, after a prompt of so many tokens.
    ///
    /// That is what the cache has room for, at least 1. There is no limit if it has room for the whole
    /// context, whose end then ends the answer.
    #[must_use]
    pub fn room(&self, prompt: usize) -> usize {
        self.memory.room(self.limits().context, prompt)
    }

    /// Runs a request to its end and passes every token to `on_token`; `Break` ends the answer.
    ///
    /// Requests that were submitted before go on meanwhile, and their events stay to be taken.
    ///
    /// # Errors
    /// The request is refused ([`Engine::submit`]), a step fails, or the logits are not numbers.
    pub fn generate(
        &mut self,
        request: Request,
        cancel: &Cancel,
        on_token: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<Generation, Error> {
        let eos = request.eos.clone();
        let id = self.submit(request)?;
        let (mut tokens, mut recorded) = (vec![], vec![]);
        let mut is_stopped = false;
        loop {
            while let Some(event) = self.next_event_of(id) {
                match event.kind {
                    // A step with accepted drafts has tokens after the last one that is wanted.
                    EventKind::Token { .. } if is_stopped => {}
                    EventKind::Token { token, logprobs } => {
                        tokens.push(token);
                        recorded.extend(logprobs.map(|logprobs| logprobs.top));
                        // Nothing follows an end of text, and it is the better reason.
                        if on_token(token).is_break() && !eos.contains(&token) {
                            is_stopped = true;
                            self.cancel(id);
                        }
                    }
                    EventKind::Finished { reason, timings } => {
                        let stop_reason = if is_stopped { StopReason::Stop } else { reason };
                        return Ok(Generation { tokens, logprobs: recorded, stop_reason, timings });
                    }
                    EventKind::Failed { error } => return Err(error),
                }
            }
            if cancel.is_cancelled() {
                self.cancel(id);
            } else {
                self.step();
            }
        }
    }
}
