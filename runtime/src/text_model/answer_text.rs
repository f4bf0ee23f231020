//! The text of an answer, from the events of its request.

use crate::{
    engine::{EventKind, StopReason, Timings},
    error::Error,
    sampling::TokenLogprobs,
    text::stream::{Piece, TextStream},
};

/// Turns the events of a request into text. It knows the end of the answer before the engine does if a stop text comes.
#[derive(Debug)]
pub struct AnswerText {
    /// `None` without a tokenizer.
    stream: Option<TextStream>,
    eos: Vec<u32>,
    is_stopped: bool,
}

/// What an event adds to an answer.
#[derive(Debug)]
pub enum AnswerPart {
    /// A token.
    Token {
        /// The text that is final now; often empty, because characters and stop texts can have several tokens.
        text: String,
        /// The id.
        token: u32,
        /// Log-probabilities, if they were requested.
        logprobs: Option<TokenLogprobs>,
        /// Whether a stop text has come: the request can be cancelled.
        stopped: bool,
    },
    /// The end.
    End {
        /// The rest of the text.
        text: String,
        /// Why it ended.
        reason: StopReason,
        /// Times and counts.
        timings: Timings,
    },
}

impl AnswerText {
    /// Begins an answer whose text is `stream`, which these tokens end. Without a stream the text stays empty.
    #[must_use]
    pub fn new(stream: Option<TextStream>, eos: Vec<u32>) -> Self {
        Self { stream, eos, is_stopped: false }
    }

    /// Adds an event. `None` for tokens after a stop text, which a step with accepted drafts can have.
    ///
    /// # Errors
    /// The event is an error, or the tokenizer refuses a token.
    pub fn push(&mut self, event: EventKind) -> Result<Option<AnswerPart>, Error> {
        match event {
            EventKind::Token { .. } if self.is_stopped => Ok(None),
            EventKind::Token { token, logprobs } => {
                let stream = self.stream.as_mut().filter(|_| !self.eos.contains(&token));
                let piece = stream.map(|stream| stream.push(token)).transpose()?;
                let Piece { text, stopped } = piece.unwrap_or_default();
                self.is_stopped = stopped;
                Ok(Some(AnswerPart::Token { text, token, logprobs, stopped }))
            }
            EventKind::Finished { reason, timings } => {
                let stream = self.stream.as_mut().filter(|_| !self.is_stopped);
                let piece = stream.map(TextStream::finish).transpose()?.unwrap_or_default();
                let reason = if self.is_stopped || piece.stopped { StopReason::Stop } else { reason };
                Ok(Some(AnswerPart::End { text: piece.text, reason, timings }))
            }
            EventKind::Failed { error } => Err(error),
        }
    }

    /// Returns whether a stop text has come.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns the text so far.
    #[must_use]
    pub fn text(&self) -> &str {
        self.stream.as_ref().map_or("", TextStream::text)
    }
}
