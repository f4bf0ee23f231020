//! Generation over any [`Session`]: prompt in, tokens out, one step at a time.
//!
//! Generation knows token ids and no text. To get text, decode in `on_token` with a [`TextStream`](crate::TextStream),
//! and return `Break` after a stop text.

use std::{
    fmt,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Cancel;

use crate::{
    error::Error,
    sampling::{Sampler, top_logprobs},
    session::{Session, check_append},
};

/// Limits of a generation, and how much of it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerateOptions {
    /// The largest number of tokens to generate. 0 runs the prompt alone.
    pub max_tokens: usize,
    /// Token ids that end the generation; empty to ignore them.
    pub eos: Vec<u32>,
    /// The number of most likely ids to record for every token. Above 0, every step reads the logits.
    pub logprobs: usize,
}

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
    /// The model generated one of [`GenerateOptions::eos`].
    Eos,
    /// `on_token` returned `Break`: the text contains a stop text.
    Stop,
    /// [`GenerateOptions::max_tokens`] were generated.
    Length,
    /// The cache is full.
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

/// Appends `prompt` to the session and generates the most likely tokens.
///
/// # Errors
/// The prompt does not fit ([`check_append`]), or the session fails.
pub fn generate_greedy(
    session: &mut dyn Session,
    prompt: &[u32],
    options: &GenerateOptions,
    cancel: &Cancel,
) -> Result<Generation, Error> {
    generate(session, prompt, options, None, cancel, &mut |_| ControlFlow::Continue(()))
}

/// Generates as [`generate_greedy`] does, and passes every token to `on_token`; `Break` ends the generation.
///
/// # Errors
/// As [`generate_greedy`].
pub fn generate_streaming_greedy(
    session: &mut dyn Session,
    prompt: &[u32],
    options: &GenerateOptions,
    cancel: &Cancel,
    on_token: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> Result<Generation, Error> {
    generate(session, prompt, options, None, cancel, on_token)
}

/// Appends `prompt` to the session and generates tokens: drawn by `sampler`, or else the most likely ones.
///
/// The last token generated is not appended, because that takes another step. Greedy generation without logprobs never
/// reads the logits. After an error or a cancellation some of the tokens may have been appended.
///
/// # Errors
/// The prompt does not fit ([`check_append`]), the session fails, or the logits are not numbers.
pub fn generate(
    session: &mut dyn Session,
    prompt: &[u32],
    options: &GenerateOptions,
    sampler: Option<&mut Sampler>,
    cancel: &Cancel,
    on_token: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> Result<Generation, Error> {
    check_append(session.capabilities(), session.position(), prompt)?;
    let mut picker = Picker { sampler, logprobs: options.logprobs, recorded: vec![] };
    let mut timings = Timings::default();
    let mut tokens = Vec::new();

    let start = Instant::now();
    let best = run_prompt(session, prompt, cancel, &mut timings)?;
    let first = match best {
        Some(best) if options.max_tokens > 0 => Some(picker.pick(session, best)?),
        _ => None,
    };
    timings.prefill = start.elapsed();
    let Some(mut token) = first else {
        let stop_reason = if best.is_none() { StopReason::Cancelled } else { StopReason::Length };
        return Ok(Generation { tokens, logprobs: vec![], stop_reason, timings });
    };

    let stop_reason = loop {
        tokens.push(token);
        let flow = on_token(token);
        if options.eos.contains(&token) {
            break StopReason::Eos;
        }
        if flow.is_break() {
            break StopReason::Stop;
        }
        if tokens.len() >= options.max_tokens {
            break StopReason::Length;
        }
        if session.position() >= session.capabilities().context {
            break StopReason::Context;
        }
        if cancel.is_cancelled() {
            break StopReason::Cancelled;
        }
        let start = Instant::now();
        let best = session.decode_step(token)?;
        token = picker.pick(session, best)?;
        timings.steps += 1;
        timings.decode += start.elapsed();
    };
    Ok(Generation { tokens, logprobs: picker.recorded, stop_reason, timings })
}

/// Runs the prompt in the session's largest chunks and looks for a cancellation between them. `None` if cancelled.
fn run_prompt(
    session: &mut dyn Session,
    prompt: &[u32],
    cancel: &Cancel,
    timings: &mut Timings,
) -> Result<Option<u32>, Error> {
    let chunk = session.capabilities().prefill.iter().max().copied().unwrap_or(prompt.len()).max(1);
    let mut best = None;
    for tokens in prompt.chunks(chunk) {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        best = Some(session.prefill(tokens)?);
        timings.prompt_tokens += tokens.len();
    }
    Ok(best)
}

/// Chooses the next token after a step, and records log-probabilities.
struct Picker<'a> {
    sampler: Option<&'a mut Sampler>,
    logprobs: usize,
    recorded: Vec<Vec<(u32, f32)>>,
}

impl Picker<'_> {
    fn pick(&mut self, session: &mut dyn Session, best: u32) -> Result<u32, Error> {
        if self.sampler.is_none() && self.logprobs == 0 {
            return Ok(best);
        }
        let logits = session.logits()?;
        if self.logprobs > 0 {
            self.recorded.push(top_logprobs(&logits, self.logprobs)?);
        }
        match &mut self.sampler {
            Some(sampler) => sampler.sample(&logits),
            None => Ok(best),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sampling::Sampling,
        scripted::{Call, ScriptedSession},
    };

    fn options(max_tokens: usize) -> GenerateOptions {
        GenerateOptions { max_tokens, eos: vec![9], logprobs: 0 }
    }

    fn greedy(session: &mut ScriptedSession, prompt: &[u32], options: &GenerateOptions) -> Generation {
        generate_greedy(session, prompt, options, &Cancel::new()).unwrap()
    }

    #[test]
    fn greedy_generation_reads_the_argmax_alone() {
        let mut session = ScriptedSession::answering(100, 10, 6, &[3, 4, 5]);
        let found = greedy(&mut session, &[1, 1, 1, 1, 1, 1], &options(3));
        assert_eq!((found.tokens, found.stop_reason), (vec![3, 4, 5], StopReason::Length));
        assert_eq!((found.timings.prompt_tokens, found.timings.steps), (6, 2));
        // Two chunks of at most 4; the last token is not appended.
        assert_eq!(session.calls(), [Call::Prefill(4), Call::Prefill(2), Call::Decode(3), Call::Decode(4)]);
        assert_eq!(session.tokens(), [1, 1, 1, 1, 1, 1, 3, 4]);
    }

    #[test]
    fn an_eos_ends_the_generation_and_is_returned() {
        let session = || ScriptedSession::answering(100, 10, 1, &[3, 9, 4]);
        let found = greedy(&mut session(), &[1], &options(10));
        assert_eq!((found.tokens, found.stop_reason), (vec![3, 9], StopReason::Eos));
        let ignored = GenerateOptions { eos: vec![], ..options(4) };
        let found = greedy(&mut session(), &[1], &ignored);
        assert_eq!((found.tokens, found.stop_reason), (vec![3, 9, 4, 4], StopReason::Length));
    }

    #[test]
    fn generation_ends_where_the_context_ends() {
        let mut session = ScriptedSession::answering(4, 10, 2, &[3]);
        let found = greedy(&mut session, &[1, 2], &options(10));
        // Two fit the cache after the prompt; a third is known without being appended.
        assert_eq!((found.tokens, found.stop_reason), (vec![3, 3, 3], StopReason::Context));
        assert_eq!(session.position(), 4);
        let mut session = ScriptedSession::answering(4, 10, 4, &[3]);
        let found = greedy(&mut session, &[1, 2, 1, 2], &options(10));
        assert_eq!((found.tokens, found.stop_reason), (vec![3], StopReason::Context));
    }

    #[test]
    fn zero_max_tokens_runs_the_prompt_alone() {
        let mut session = ScriptedSession::answering(100, 10, 2, &[3]);
        let found = greedy(&mut session, &[1, 2], &options(0));
        assert_eq!((found.tokens, found.stop_reason), (vec![], StopReason::Length));
        assert_eq!((session.position(), found.timings.prompt_tokens), (2, 2));
    }

    #[test]
    fn on_token_gets_every_token_and_can_stop() {
        let mut session = ScriptedSession::answering(100, 10, 1, &[3, 4, 5, 6]);
        let mut seen = vec![];
        let mut on_token = |token| {
            seen.push(token);
            if token == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found =
            generate_streaming_greedy(&mut session, &[1], &options(10), &Cancel::new(), &mut on_token)
                .unwrap();
        assert_eq!((found.tokens, found.stop_reason), (vec![3, 4, 5], StopReason::Stop));
        assert_eq!(seen, [3, 4, 5]);
    }

    #[test]
    fn the_reason_is_eos_even_if_on_token_breaks_there() {
        let mut session = ScriptedSession::answering(100, 10, 1, &[9]);
        let mut on_token = |_| ControlFlow::Break(());
        let found =
            generate_streaming_greedy(&mut session, &[1], &options(10), &Cancel::new(), &mut on_token)
                .unwrap();
        assert_eq!((found.tokens, found.stop_reason), (vec![9], StopReason::Eos));
    }

    #[test]
    fn cancelled_between_steps() {
        let mut session = ScriptedSession::answering(100, 10, 1, &[3]);
        let cancel = Cancel::new();
        let (mut count, switch) = (0, cancel.clone());
        let mut on_token = |_| {
            count += 1;
            if count == 2 {
                switch.cancel();
            }
            ControlFlow::Continue(())
        };
        let found =
            generate_streaming_greedy(&mut session, &[1], &options(10), &cancel, &mut on_token).unwrap();
        assert_eq!((found.tokens, found.stop_reason), (vec![3, 3], StopReason::Cancelled));
        // Nothing runs while it is on; the session continues when it is off.
        let found = generate_greedy(&mut session, &[1], &options(10), &cancel).unwrap();
        assert_eq!((found.tokens, found.stop_reason), (vec![], StopReason::Cancelled));
        assert_eq!(session.position(), 2);
        cancel.reset();
        assert_eq!(generate_greedy(&mut session, &[1], &options(1), &cancel).unwrap().tokens, [3]);
    }

    #[test]
    fn cancelled_between_chunks_of_the_prompt() {
        let cancel = Cancel::new();
        let switch = cancel.clone();
        let mut session = ScriptedSession::new(100, 10, move |tokens| {
            if tokens.len() == 8 {
                switch.cancel();
            }
            vec![0.0; 10]
        });
        let found = generate_greedy(&mut session, &[1; 50], &options(5), &cancel).unwrap();
        assert_eq!((found.tokens, found.stop_reason), (vec![], StopReason::Cancelled));
        assert_eq!((session.position(), found.timings.prompt_tokens), (8, 8));
    }

    #[test]
    fn a_prompt_is_appended_to_the_session() {
        let mut session = ScriptedSession::answering(100, 10, 2, &[3, 4, 5]);
        greedy(&mut session, &[1, 2], &options(1));
        let found = greedy(&mut session, &[3], &options(2));
        assert_eq!(found.tokens, [4, 5]);
        session.rewind(2).unwrap();
        assert_eq!(greedy(&mut session, &[3], &options(1)).tokens, [4]);
    }

    #[test]
    fn logprobs_of_greedy_tokens() {
        let mut session = ScriptedSession::new(100, 3, |tokens| match tokens.len() {
            1 => vec![0.0, 0.0, f32::NEG_INFINITY],
            _ => vec![0.0, 1.0, 2.0],
        });
        let found = greedy(&mut session, &[1], &GenerateOptions { logprobs: 2, ..options(2) });
        assert_eq!(found.tokens, [0, 2]);
        let half = -std::f32::consts::LN_2;
        assert_eq!(found.logprobs[0], [(0, half), (1, half)]);
        assert_eq!(found.logprobs[1], [(2, -0.407_605_98), (1, -1.407_606)]);
    }

    #[test]
    fn sampling_reads_the_logits_each_step() {
        let mut session = ScriptedSession::answering(100, 10, 1, &[3]);
        let mut sampler = Sampler::new(Sampling { temperature: 0.01, ..Sampling::default() }).unwrap();
        let mut on_token = |_| ControlFlow::Continue(());
        let options = options(2);
        let cancel = Cancel::new();
        let found =
            generate(&mut session, &[1], &options, Some(&mut sampler), &cancel, &mut on_token).unwrap();
        assert_eq!(found.tokens, [3, 3]);
        assert_eq!(session.calls(), [Call::Prefill(1), Call::Logits, Call::Decode(3), Call::Logits]);
    }

    #[test]
    fn prompts_that_are_refused() {
        let message = |prompt: &[u32]| {
            let mut session = ScriptedSession::answering(4, 10, 1, &[3]);
            let error = generate_greedy(&mut session, prompt, &options(1), &Cancel::new()).unwrap_err();
            assert_eq!(session.calls(), []);
            error.to_string()
        };
        assert!(message(&[]).starts_with("the prompt has no tokens, expected at least one\nhint: "));
        assert_eq!(
            message(&[1, 10]),
            "token 2 of the prompt has the id 10, expected 0 to 9\n\
             hint: give ids of the model's own tokenizer"
        );
        assert_eq!(
            message(&[1; 5]),
            "5 tokens at position 0, expected at most 4: the context is 4\n\
             hint: shorten the prompt, raise --ctx-size if it was given, or compile the bundle again with a larger one"
        );
    }

    #[test]
    fn rates_without_a_measured_time() {
        assert_eq!(Timings::default().prefill_tok_s(), None);
        let timings = Timings { steps: 10, decode: Duration::from_millis(500), ..Timings::default() };
        assert_eq!(timings.decode_tok_s(), Some(20.0));
    }
}
