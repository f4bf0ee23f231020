//! What was read of an answer.

use mlxcel_runtime::{AnswerPart, AnswerText, Error, Request, engine::EventKind};
use pyo3::prelude::*;

use crate::{
    answer::{Answer, Piece, TokenLogprobs},
    texts::Texts,
};

/// A request, with the text that its answer continues.
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) before: Vec<u32>,
}

/// What was read of an answer.
pub(crate) struct Reading {
    text: AnswerText,
    answer: Partial,
    /// The answer, when it is complete.
    pub(crate) end: Option<Answer>,
}

#[derive(Default)]
struct Partial {
    tokens: Vec<u32>,
    logprobs: Option<Vec<TokenLogprobs>>,
}

impl Reading {
    /// Begins to read the answer to a request.
    pub(crate) fn new(texts: &Texts, asked: &Asked, stops: &[String]) -> PyResult<Self> {
        let Asked { request, before } = asked;
        let text = texts.answer(before, stops, &request.eos)?;
        let logprobs = request.logprobs.map(|_| Vec::new());
        Ok(Self { text, answer: Partial { tokens: Vec::new(), logprobs }, end: None })
    }

    /// Adds an event. Returns what it adds, and whether the request can be cancelled.
    pub(crate) fn add(&mut self, event: EventKind) -> Result<(Option<Piece>, bool), Error> {
        match self.text.push(event)? {
            None => Ok((None, false)),
            Some(AnswerPart::Token { text, token, logprobs, stopped }) => {
                let logprobs = logprobs.map(TokenLogprobs::from);
                self.answer.tokens.push(token);
                if let (Some(all), Some(one)) = (&mut self.answer.logprobs, &logprobs) {
                    all.push(one.clone());
                }
                Ok((Some(Piece { text, token: Some(token), logprobs }), stopped))
            }
            Some(AnswerPart::End { text, reason, timings }) => {
                let Partial { tokens, logprobs } = std::mem::take(&mut self.answer);
                self.end = Some(Answer {
                    text: self.text.text().to_owned(),
                    tokens,
                    finish_reason: reason.name(),
                    logprobs,
                    timings: (&timings).into(),
                });
                let rest = Piece { text, token: None, logprobs: None };
                Ok((Some(rest).filter(|rest| !rest.text.is_empty()), false))
            }
        }
    }
}
