//! An answer on its way: from the engine's tokens to text and calls.

use std::time::Instant;

use mlxcel_runtime::{
    EngineError, Error, Piece, StopReason, TextStream, Timings, TokenLogprobs,
    engine::{EventKind, RequestGuard},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    api::error::ApiError,
    model::ServedModel,
    observe::record::AnswerRecord,
    tools::{AnswerReader, Delta, Expected},
};

/// Tokens of an answer as they come out of the engine. Dropping it cancels the request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Bounded by the request's largest number of tokens: who reads slowly keeps no pages.
    events: UnboundedReceiver<(Instant, EventKind)>,
    guard: RequestGuard,
    stream: TextStream,
    reader: AnswerReader,
    /// Tokens that end the answer, and have no text.
    eos: Vec<u32>,
    is_stopped: bool,
    has_ended: bool,
    record: AnswerRecord,
}

/// An answer of a request that may have several.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) answer: Answer,
    /// Tokens of the prompt, if this is its first answer.
    pub(crate) prompt: usize,
}

/// A token with log-probabilities.
#[derive(Debug, Clone)]
pub(crate) struct AnswerToken {
    pub(crate) id: u32,
    pub(crate) logprobs: Option<TokenLogprobs>,
}

/// What comes next of an answer.
#[derive(Debug)]
pub(crate) enum Part {
    /// More of it. There may be no text: characters, stop texts and markers can have several tokens.
    Token {
        /// What is final now.
        deltas: Vec<Delta>,
        /// The token.
        token: AnswerToken,
    },
    /// Its end.
    End {
        /// The rest of it.
        deltas: Vec<Delta>,
        /// Why it ended, by OpenAI's name.
        finish: &'static str,
        /// Times and counts.
        timings: Timings,
    },
}

impl Answer {
    /// Submits a request.
    ///
    /// # Errors
    /// The engine refuses it, or its queue is full.
    pub(crate) fn ask(
        model: &ServedModel,
        request: mlxcel_runtime::Request,
        before: &[u32],
        stops: &[String],
        expected: &Expected,
        record: AnswerRecord,
    ) -> Result<Self, ApiError> {
        let stream = model.tokenizer().stream(before, stops)?.keeping(&expected.special());
        let eos = request.eos.clone();
        let (sender, events) = unbounded_channel();
        let sink = Box::new(move |event| sender.send((Instant::now(), event)).is_ok());
        let guard = model.client().try_submit_to(request, sink)?;
        let reader = AnswerReader::new(expected);
        Ok(Self { events, guard, stream, reader, eos, is_stopped: false, has_ended: false, record })
    }

    /// Waits for the next part. `None` after the end.
    ///
    /// # Errors
    /// The engine fails or ends, or the tokenizer refuses a token.
    pub(crate) async fn next(&mut self) -> Result<Option<Part>, ApiError> {
        while !self.has_ended {
            let Some((at, event)) = self.events.recv().await else {
                self.has_ended = true;
                self.record.fail();
                return Err(Error::from(EngineError::Closed).into());
            };
            match event {
                // A step with accepted drafts has tokens after the last one that is wanted.
                EventKind::Token { .. } if self.is_stopped => {}
                EventKind::Token { token, logprobs } => {
                    self.record.token(at);
                    let is_end = self.eos.contains(&token);
                    let piece = if is_end { Piece::default() } else { self.stream.push(token)? };
                    if piece.stopped {
                        self.is_stopped = true;
                        self.guard.cancel();
                    }
                    let token = AnswerToken { id: token, logprobs };
                    return Ok(Some(Part::Token { deltas: self.reader.push(&piece.text), token }));
                }
                EventKind::Finished { reason, timings } => {
                    self.has_ended = true;
                    let piece = if self.is_stopped { Piece::default() } else { self.stream.finish()? };
                    let reason = if self.is_stopped || piece.stopped { StopReason::Stop } else { reason };
                    let mut deltas = self.reader.push(&piece.text);
                    deltas.append(&mut self.reader.finish());
                    let finish = finish_reason(reason, self.reader.has_calls());
                    self.record.end(finish, &timings);
                    return Ok(Some(Part::End { deltas, finish, timings }));
                }
                EventKind::Failed { error } => {
                    self.has_ended = true;
                    self.record.fail();
                    return Err(error.into());
                }
            }
        }
        Ok(None)
    }
}

/// Returns OpenAI's name of a reason.
fn finish_reason(reason: StopReason, has_calls: bool) -> &'static str {
    match reason {
        StopReason::Eos | StopReason::Stop if has_calls => "tool_calls",
        StopReason::Eos | StopReason::Stop => "stop",
        StopReason::Length | StopReason::Context | StopReason::Cancelled => "length",
    }
}
