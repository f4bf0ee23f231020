//! An answer on its way: from the engine's tokens to text and calls.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mlxcel_runtime::{
    AnswerPart, AnswerText, EngineError, Error, StopReason, Timings, TokenLogprobs,
    engine::{EventKind, RequestGuard},
    receipt::{Maker, Receipt, RecordedAnswer, RecordedRequest},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    api::error::ApiError,
    generator::Generator,
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
    text: AnswerText,
    reader: AnswerReader,
    has_ended: bool,
    record: AnswerRecord,
    draft: Option<ReceiptDraft>,
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
        /// Its receipt, if it was asked for.
        receipt: Option<Box<Receipt>>,
    },
}

/// A receipt of an answer that goes on.
#[derive(Debug)]
pub(crate) struct ReceiptDraft {
    maker: Maker,
    request: RecordedRequest,
    tokens: Vec<u32>,
}

impl ReceiptDraft {
    /// Begins the receipt of an answer by a model.
    pub(crate) fn new(model: &ServedModel, request: RecordedRequest) -> Self {
        let facts = model.facts();
        let (bundle, target) = (facts.digest, facts.target.clone());
        Self { maker: Maker { bundle, target, model: model.name().to_owned() }, request, tokens: vec![] }
    }

    fn end(self, finish_reason: StopReason) -> Box<Receipt> {
        let Self { maker, request, tokens } = self;
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Box::new(Receipt::new(maker, created, request, RecordedAnswer { tokens, finish_reason }))
    }
}

impl Answer {
    /// Submits a request.
    ///
    /// # Errors
    /// The engine refuses it, or its queue is full.
    pub(crate) fn ask(
        generator: &Generator,
        request: mlxcel_runtime::Request,
        before: &[u32],
        stops: &[String],
        expected: &Expected,
        mut record: AnswerRecord,
        draft: Option<ReceiptDraft>,
    ) -> Result<Self, ApiError> {
        let stream = generator.tokenizer().stream(before, stops)?.keeping(&expected.special());
        let eos = request.eos.clone();
        let (sender, events) = unbounded_channel();
        let sink = Box::new(move |event| sender.send((Instant::now(), event)).is_ok());
        let guard = generator.client().try_submit_to(request, sink);
        let guard = guard.inspect_err(|_| record.refuse())?;
        let reader = AnswerReader::new(expected);
        let text = AnswerText::new(Some(stream), eos);
        Ok(Self { events, guard, text, reader, has_ended: false, record, draft })
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
            if let EventKind::Token { token, .. } = &event
                && !self.text.is_stopped()
            {
                self.record.token(at);
                if let Some(draft) = &mut self.draft {
                    draft.tokens.push(*token);
                }
            }
            self.has_ended = !matches!(event, EventKind::Token { .. });
            match self.text.push(event) {
                Ok(None) => {}
                Ok(Some(AnswerPart::Token { text, token, logprobs, stopped })) => {
                    if stopped {
                        self.guard.cancel();
                    }
                    let token = AnswerToken { id: token, logprobs };
                    return Ok(Some(Part::Token { deltas: self.reader.push(&text), token }));
                }
                Ok(Some(AnswerPart::End { text, reason, timings })) => {
                    let mut deltas = self.reader.push(&text);
                    deltas.append(&mut self.reader.finish());
                    let finish = finish_reason(reason, self.reader.has_calls());
                    self.record.end(finish, &timings);
                    let receipt = self.draft.take().map(|draft| draft.end(reason));
                    return Ok(Some(Part::End { deltas, finish, timings, receipt }));
                }
                Err(error) => {
                    if self.has_ended {
                        self.record.fail();
                    }
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
