//! Requests and what comes out of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    generation::{StopReason, Timings},
    grammar::SharedGrammar,
    memory::Memory,
    ngram::Speculation,
};
use crate::{
    error::{EngineError, Error},
    model::ModelLimits,
    sampling::{Sampler, Sampling, TokenLogprobs},
};

/// A prompt, and how it is to be continued.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The tokens to continue; at least one.
    pub prompt: Vec<u32>,
    /// The largest number of tokens to generate. 0 runs the prompt alone, which fills the cache.
    pub max_tokens: usize,
    /// Token ids that end the answer; empty to ignore them.
    pub eos: Vec<u32>,
    /// Draws tokens with a random stream of the request's own; `None` takes the most likely ones.
    pub sampling: Option<Sampling>,
    /// Added to the logits of tokens, `(id, bias)`: numbers, or -inf for a token that must not come.
    pub logit_bias: Vec<(u32, f32)>,
    /// Makes tokens of the text so far less likely.
    pub penalties: Penalties,
    /// What the answer must be.
    pub grammar: Option<SharedGrammar>,
    /// Log-probabilities come with every token: its own, and those of so many most likely ids.
    pub logprobs: Option<usize>,
    /// Guesses tokens from the text and verifies several in one step. The answer is the same as without.
    pub speculate: Option<Speculation>,
}

/// Makes tokens of the text so far less likely, by OpenAI's formula and by that of Hugging Face.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Penalties {
    /// Subtracted once from the logits of tokens of the answer; 0 changes nothing.
    pub presence: f32,
    /// Subtracted from the logits of tokens of the answer as often as they are in it; 0 changes nothing.
    pub frequency: f32,
    /// Divides positive logits of tokens of prompt and answer, and multiplies negative ones; above 0, and 1 changes nothing.
    pub repetition: f32,
}

impl Default for Penalties {
    fn default() -> Self {
        Self { presence: 0.0, frequency: 0.0, repetition: 1.0 }
    }
}

/// The number of a request, in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(super) u64);

/// What comes out of an engine for one request.
#[derive(Debug)]
pub struct Event {
    /// The request.
    pub id: RequestId,
    /// What came out.
    pub kind: EventKind,
}

/// What comes out: any number of tokens, then one of the others.
#[derive(Debug)]
pub enum EventKind {
    /// The next token of the answer.
    Token {
        /// The id.
        token: u32,
        /// Log-probabilities, if they were requested.
        logprobs: Option<TokenLogprobs>,
    },
    /// The answer is complete.
    Finished {
        /// Why it ended.
        reason: StopReason,
        /// The times and counts.
        timings: Timings,
    },
    /// There is no more of the answer.
    Failed {
        /// Why.
        error: Error,
    },
}

impl Request {
    /// Returns the number of positions that the request can write. The last token generated is not written.
    pub(super) fn positions(&self, context: usize) -> usize {
        self.prompt.len().saturating_add(self.max_tokens.saturating_sub(1)).min(context)
    }

    /// Checks the request and makes its sampler.
    ///
    /// # Errors
    /// There are no tokens, a token is outside the vocabulary, the prompt is longer than the context, a setting is out
    /// of its range, or the pools have too few pages for this request alone.
    pub(super) fn check(&self, limits: &ModelLimits, memory: &Memory) -> Result<Option<Sampler>, Error> {
        limits.check_prompt(&self.prompt)?;
        if let Some(speculation) = &self.speculate {
            speculation.check()?;
        }
        memory.check(self.positions(limits.context))?;
        self.check_changes(limits.vocab)?;
        self.sampling.map(Sampler::new).transpose()
    }
}

impl Request {
    /// Checks biases and penalties.
    fn check_changes(&self, vocab: usize) -> Result<(), Error> {
        for &(token, value) in &self.logit_bias {
            if token as usize >= vocab {
                return Err(EngineError::BiasedToken { token, vocab }.into());
            }
            // With a logit of inf, there are no probabilities.
            if value.is_nan() || value == f32::INFINITY {
                let (name, expected) = ("a logit bias", "a number or -inf");
                return Err(EngineError::BadChange { name, value, expected }.into());
            }
        }
        let Penalties { presence, frequency, repetition } = self.penalties;
        for (name, value) in [("the presence penalty", presence), ("the frequency penalty", frequency)] {
            if !value.is_finite() {
                return Err(EngineError::BadChange { name, value, expected: "a number" }.into());
            }
        }
        let (name, value, expected) = ("the repetition penalty", repetition, "a number above 0");
        if !(value > 0.0 && value.is_finite()) {
            return Err(EngineError::BadChange { name, value, expected }.into());
        }
        Ok(())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
