//! Requests and what comes out of them.

use std::fmt;

use super::{
    generation::{StopReason, Timings},
    memory::Memory,
    ngram::Speculation,
};
use crate::{
    error::Error,
    model::ModelLimits,
    sampling::{Sampler, Sampling},
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
    /// The number of most likely ids that come with every token.
    pub logprobs: usize,
    /// Guesses tokens from the text and verifies several in one step. The answer is the same as without.
    pub speculate: Option<Speculation>,
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
        /// The most likely ids with their log-probabilities, best first; empty if none were requested.
        logprobs: Vec<(u32, f32)>,
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
        self.sampling.map(Sampler::new).transpose()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
