//! What comes of one request: its tokens, why it ended, and how long it took.

use std::{fmt, time::Duration};

/// The result of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// The tokens generated, including the one that ended the generation.
    pub tokens: Vec<u32>,
    /// The most likely ids at each token with their log-probabilities, best first; empty if none were requested.
    pub logprobs: Vec<Vec<(u32, f32)>>,
    /// The reason why the generation ended.
    pub stop_reason: StopReason,
    /// The time it took.
    pub timings: Timings,
}

/// The reason why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model generated one of [`Request::eos`](super::Request::eos).
    Eos,
    /// Who takes the tokens wants no more: the text contains a stop text.
    Stop,
    /// [`Request::max_tokens`](super::Request::max_tokens) were generated.
    Length,
    /// The context is full.
    Context,
    /// The generation was cancelled.
    Cancelled,
}

/// The times of a generation, without the time spent in `on_token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    /// Time that the request waited for pages or for its turn.
    pub queued: Duration,
    /// Prompt tokens that were run.
    pub prompt_tokens: usize,
    /// Prompt tokens that were not run, because pages of an earlier request had them.
    pub cached_tokens: usize,
    /// Time from the start to the first token.
    pub prefill: Duration,
    /// Decode steps: one for each token after the first that is not an accepted draft.
    pub steps: usize,
    /// Tokens that were guessed and verified.
    pub drafted: usize,
    /// Guessed tokens that are part of the answer.
    pub accepted: usize,
    /// Time of all decode steps.
    pub decode: Duration,
}

impl StopReason {
    /// Returns the name in programs' output: `eos`, `stop`, `length`, `context` or `cancelled`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eos => "eos",
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Context => "context",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Timings {
    /// Returns prompt tokens per second; `None` if no time was measured.
    #[must_use]
    pub fn prefill_tok_s(&self) -> Option<f64> {
        rate(self.prompt_tokens, self.prefill)
    }

    /// Returns generated tokens per second, without the first; `None` if no time was measured.
    #[must_use]
    pub fn decode_tok_s(&self) -> Option<f64> {
        rate(self.steps + self.accepted, self.decode)
    }
}

fn rate(tokens: usize, time: Duration) -> Option<f64> {
    (tokens > 0 && !time.is_zero()).then(|| tokens as f64 / time.as_secs_f64())
}
