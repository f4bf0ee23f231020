//! Answers that are read while they grow, on another thread than the engine's.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::answer_text::{AnswerPart, AnswerText};
use crate::{
    engine::{EngineClient, EventKind, EventSink, Request, RequestGuard, StopReason, Timings},
    error::Error,
    sampling::TokenLogprobs,
};

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text, up to a stop text; empty without a tokenizer.
    pub text: String,
    /// All tokens, those of a stop text or an end of text included.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Log-probabilities of each token; empty if they were not asked for.
    pub logprobs: Vec<TokenLogprobs>,
    /// Times and counts.
    pub timings: Timings,
}

/// What a token adds to an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerPiece {
    /// The text that is final now; often empty, because characters and stop texts can have several tokens.
    pub text: String,
    /// The token; `None` at the end, where a rest of text may come.
    pub token: Option<u32>,
    /// Log-probabilities, if they were asked for.
    pub logprobs: Option<TokenLogprobs>,
}

/// Puts an answer together of its request's events.
#[derive(Debug)]
pub struct AnswerReader {
    text: AnswerText,
    tokens: Vec<u32>,
    logprobs: Vec<TokenLogprobs>,
    keeps_logprobs: bool,
    end: Option<Answer>,
}

impl AnswerReader {
    /// Begins an answer.
    pub(super) fn new(text: AnswerText, keeps_logprobs: bool) -> Self {
        Self { text, tokens: Vec::new(), logprobs: Vec::new(), keeps_logprobs, end: None }
    }

    /// Adds an event. Returns what it adds, and whether a stop text has come, so that the request can be cancelled.
    ///
    /// # Errors
    /// The event is an error, or the tokenizer refuses a token.
    pub fn push(&mut self, event: EventKind) -> Result<(Option<AnswerPiece>, bool), Error> {
        match self.text.push(event)? {
            None => Ok((None, false)),
            Some(AnswerPart::Token { text, token, logprobs, stopped }) => {
                self.tokens.push(token);
                if self.keeps_logprobs {
                    self.logprobs.extend(logprobs.clone());
                }
                Ok((Some(AnswerPiece { text, token: Some(token), logprobs }), stopped))
            }
            Some(AnswerPart::End { text, reason: stop_reason, timings }) => {
                self.end = Some(Answer {
                    text: self.text.text().to_owned(),
                    tokens: std::mem::take(&mut self.tokens),
                    stop_reason,
                    logprobs: std::mem::take(&mut self.logprobs),
                    timings,
                });
                let rest = AnswerPiece { text, token: None, logprobs: None };
                Ok((Some(rest).filter(|rest| !rest.text.is_empty()), false))
            }
        }
    }

    /// Returns the whole answer, or `None` before its end.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.end.as_ref()
    }

    /// Returns the whole answer, or `None` before its end.
    #[must_use]
    pub fn into_answer(self) -> Option<Answer> {
        self.end
    }
}

/// Tells of an event that came, on the engine's thread, which waits for it.
pub type Watcher = Box<dyn Fn() + Send>;

/// Events on their way from the engine's thread.
#[derive(Default)]
struct Mailbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<EventKind>,
    /// Whether an error was read, after which nothing comes.
    has_failed: bool,
    watcher: Option<Watcher>,
    /// True to tell of the end alone.
    only_end: bool,
    /// Whether the watcher was told of what is here.
    is_told: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, event: EventKind) {
        let mut state = self.lock();
        if !state.has_failed {
            state.events.push_back(event);
            state.tell();
            // Not before: who wakes takes the lock.
            drop(state);
            self.changed.notify_one();
        }
    }
}

impl State {
    /// Tells the watcher, if there is what it waits for.
    fn tell(&mut self) {
        let is_wanted = |event: &EventKind| !self.only_end || !matches!(event, EventKind::Token { .. });
        let has_news = self.events.back().is_some_and(is_wanted);
        if let Some(watcher) = self.watcher.as_ref().filter(|_| has_news && !self.is_told) {
            watcher();
            self.is_told = true;
        }
    }
}

/// An answer that is read while it grows. Dropping it cancels the request.
pub struct AnswerStream {
    mailbox: Arc<Mailbox>,
    guard: RequestGuard,
    reader: Mutex<AnswerReader>,
}

/// What comes next of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// More of it.
    Piece(AnswerPiece),
    /// Its end.
    End,
    /// Nothing yet.
    Nothing,
}

impl AnswerStream {
    /// Submits a request.
    pub(super) fn start(
        client: &EngineClient,
        reader: AnswerReader,
        request: Request,
    ) -> Result<Self, Error> {
        let mailbox = Arc::new(Mailbox::default());
        let sink: EventSink = {
            let mailbox = mailbox.clone();
            Box::new(move |event| {
                mailbox.put(event);
                true
            })
        };
        let guard = client.try_submit_to(request, sink)?;
        Ok(Self { mailbox, guard, reader: Mutex::new(reader) })
    }

    fn reader(&self) -> MutexGuard<'_, AnswerReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at most so long for the next piece.
    ///
    /// # Errors
    /// The request failed, or the tokenizer refuses a token. That is the last that comes before the end.
    pub fn next(&self, timeout: Duration) -> Result<Next, Error> {
        while !self.has_ended() {
            let has_nothing = |state: &mut State| state.events.is_empty() && !state.has_failed;
            let found = self.mailbox.changed.wait_timeout_while(self.mailbox.lock(), timeout, has_nothing);
            let event = found.unwrap_or_else(PoisonError::into_inner).0.events.pop_front();
            let Some(event) = event else { return Ok(Next::Nothing) };
            if let Some(piece) = self.push(event).inspect_err(|_| self.fail(None))? {
                return Ok(Next::Piece(piece));
            }
        }
        Ok(Next::End)
    }

    /// Returns all pieces that have come, and whether that was the end.
    ///
    /// Pieces before an error come first, and the error at the next call, unless the end alone is watched.
    ///
    /// # Errors
    /// The request failed, or the tokenizer refuses a token. That is the last that comes before the end.
    pub fn poll(&self) -> Result<(Vec<AnswerPiece>, bool), Error> {
        let (events, only_end) = {
            let mut state = self.mailbox.lock();
            state.is_told = false;
            (std::mem::take(&mut state.events), state.only_end)
        };
        let mut pieces = Vec::new();
        for event in events {
            match self.push(event) {
                Ok(piece) => pieces.extend(piece),
                Err(error) if pieces.is_empty() || only_end => {
                    self.fail(None);
                    return Err(error);
                }
                Err(error) => {
                    self.fail(Some(error));
                    return Ok((pieces, false));
                }
            }
        }
        Ok((pieces, self.has_ended()))
    }

    /// Returns whether nothing more comes.
    fn has_ended(&self) -> bool {
        let has_failed = self.mailbox.lock().has_failed;
        has_failed || self.reader().answer().is_some()
    }

    /// Ends the request, and forgets what it still sends. An error that comes later is the last that is read.
    fn fail(&self, later: Option<Error>) {
        self.guard.cancel();
        let mut state = self.mailbox.lock();
        state.has_failed = later.is_none();
        state.events = later.map(|error| EventKind::Failed { error }).into_iter().collect();
        state.tell();
        self.mailbox.changed.notify_all();
    }

    fn push(&self, event: EventKind) -> Result<Option<AnswerPiece>, Error> {
        let (piece, is_stopped) = self.reader().push(event)?;
        if is_stopped {
            self.guard.cancel();
        }
        Ok(piece)
    }

    /// Tells `watcher` of news from now on, or of the end alone: once, until [`AnswerStream::poll`] has taken it.
    pub fn watch(&self, only_end: bool, watcher: Watcher) {
        let mut state = self.mailbox.lock();
        (state.watcher, state.only_end, state.is_told) = (Some(watcher), only_end, false);
        state.tell();
    }

    /// Ends the request. What has come can still be read.
    pub fn cancel(&self) {
        self.guard.cancel();
    }

    /// Returns the whole answer, or `None` before its end.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        self.reader().answer().cloned()
    }
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream").field("reader", &self.reader).finish_non_exhaustive()
    }
}
