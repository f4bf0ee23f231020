//! Answers, as Python sees them.

use mlxcel_runtime as runtime;
use pyo3::{IntoPyObjectExt as _, prelude::*};

/// Log-probabilities that come with a token, in the model's own distribution.
#[pyclass(frozen, get_all, eq, module = "mlxcel", from_py_object)]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenLogprobs {
    /// That of the token.
    pub(crate) token: f32,
    /// The most likely ids with theirs, best first.
    pub(crate) top: Vec<(u32, f32)>,
}

/// Times in seconds, and counts of tokens.
#[pyclass(frozen, get_all, eq, module = "mlxcel", from_py_object)]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timings {
    /// Time that the request waited for its turn.
    queued: f64,
    /// Time from its turn to the first token.
    prefill: f64,
    /// Time of all later steps.
    decode: f64,
    /// Tokens of the prompt that were run.
    prompt_tokens: usize,
    /// Tokens of the prompt that an earlier request had left in the cache.
    cached_tokens: usize,
    /// Tokens that were guessed and verified.
    drafted_tokens: usize,
    /// Guessed tokens that are part of the answer.
    accepted_tokens: usize,
}

/// An answer.
#[pyclass(frozen, get_all, eq, module = "mlxcel", from_py_object)]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// The text, up to a stop text.
    pub(crate) text: String,
    /// All tokens, those of a stop text or an end of text included.
    pub(crate) tokens: Vec<u32>,
    /// Why it ended: eos, stop, length, context or cancelled.
    pub(crate) finish_reason: &'static str,
    /// Log-probabilities of each token, if they were asked for.
    pub(crate) logprobs: Option<Vec<TokenLogprobs>>,
    /// Times and counts.
    pub(crate) timings: Timings,
}

/// What a token adds to an answer.
#[pyclass(frozen, get_all, eq, module = "mlxcel", from_py_object)]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    /// The text that is final now; often empty, because characters and stop texts can have several tokens.
    pub(crate) text: String,
    /// The token; None at the end, where a rest of text may come.
    pub(crate) token: Option<u32>,
    /// Log-probabilities, if they were asked for.
    pub(crate) logprobs: Option<TokenLogprobs>,
}

/// Shows an object as Python shows a dataclass.
macro_rules! shown {
    ($($class:ident { $($field:ident),* })*) => {$(
        #[pymethods]
        impl $class {
            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let fields = [$((stringify!($field), self.$field.clone().into_bound_py_any(py)?)),*];
                let fields = fields.into_iter().map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
                let fields: PyResult<Vec<_>> = fields.collect();
                Ok(format!("{}({})", stringify!($class), fields?.join(", ")))
            }
        }
    )*};
}

shown! {
    TokenLogprobs { token, top }
    Timings { queued, prefill, decode, prompt_tokens, cached_tokens, drafted_tokens, accepted_tokens }
    Answer { text, tokens, finish_reason, logprobs, timings }
    Piece { text, token, logprobs }
}

impl From<runtime::Answer> for Answer {
    fn from(answer: runtime::Answer) -> Self {
        let runtime::Answer { text, tokens, stop_reason, logprobs, timings } = answer;
        let has_logprobs = !logprobs.is_empty();
        let logprobs = logprobs.into_iter().map(TokenLogprobs::from).collect();
        Self {
            text,
            tokens,
            finish_reason: stop_reason.name(),
            logprobs: Some(logprobs).filter(|_| has_logprobs),
            timings: (&timings).into(),
        }
    }
}

impl From<runtime::AnswerPiece> for Piece {
    fn from(runtime::AnswerPiece { text, token, logprobs }: runtime::AnswerPiece) -> Self {
        Self { text, token, logprobs: logprobs.map(TokenLogprobs::from) }
    }
}

impl From<runtime::TokenLogprobs> for TokenLogprobs {
    fn from(runtime::TokenLogprobs { token, top }: runtime::TokenLogprobs) -> Self {
        Self { token, top }
    }
}

impl From<&runtime::Timings> for Timings {
    fn from(timings: &runtime::Timings) -> Self {
        let &runtime::Timings {
            queued,
            prompt_tokens,
            cached_tokens,
            prefill,
            steps: _,
            drafted: drafted_tokens,
            accepted: accepted_tokens,
            decode,
        } = timings;
        let [queued, prefill, decode] = [queued, prefill, decode].map(|time| time.as_secs_f64());
        Self { queued, prefill, decode, prompt_tokens, cached_tokens, drafted_tokens, accepted_tokens }
    }
}
