//! Speed of a model, in the form of llama-bench: a prompt of n tokens, or n decode steps, at a depth.

use std::{
    fmt,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Cancel;

use super::read::ReadBandwidth;
use crate::{
    engine::{Engine, EventKind, Request, RequestId, StopReason},
    error::{Error, MeasureError},
    model::ModelRunner,
};

/// The work that a benchmark measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchWork {
    /// One prompt of this many tokens (`pp`).
    Prompt(usize),
    /// This many decode steps of one token (`tg`).
    Decode(usize),
}

/// A benchmark: work, and its position in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchCase {
    /// The work.
    pub work: BenchWork,
    /// Tokens in the cache before it.
    pub depth: usize,
}

/// The result of one repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchSample {
    /// Tokens per second.
    pub tok_s: f64,
    /// Bytes per second of the read of memory just before, or of a GPU's copy, if there was one.
    pub memory_bytes_s: Option<f64>,
}

/// Mean and sample standard deviation, with the divisor n - 1 as in llama-bench.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 for one value.
    pub deviation: f64,
}

impl BenchCase {
    /// Returns the number of tokens of the work.
    #[must_use]
    pub fn tokens(&self) -> usize {
        let (BenchWork::Prompt(tokens) | BenchWork::Decode(tokens)) = self.work;
        tokens
    }

    /// Returns the position in the middle of the work's tokens.
    #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
    #[must_use]
    pub fn middle(&self) -> f64 {
        self.depth as f64 + self.tokens() as f64 / 2.0
    }

    /// Runs the work once to warm up, then `repetitions` times. Before decode steps, measures `read` if there is one, or how fast
    /// a GPU copies its memory.
    ///
    /// # Errors
    /// The sequence does not fit the context, the device fails, or `cancel` is set.
    pub fn run<R: ModelRunner>(
        &self,
        engine: &mut Engine<R>,
        repetitions: usize,
        read: Option<&ReadBandwidth>,
        cancel: &Cancel,
    ) -> Result<Vec<BenchSample>, Error> {
        self.check(engine)?;
        let mut samples = Vec::with_capacity(repetitions);
        for repetition in 0..=repetitions {
            let memory_bytes_s = match (self.work, read) {
                (BenchWork::Prompt(_), _) => None,
                (BenchWork::Decode(_), Some(read)) => Some(read.bytes_per_second()),
                (BenchWork::Decode(_), None) => engine.runner().copy_bandwidth()?,
            };
            let took = self.once(engine, repetition, cancel, &mut |_| Ok(()))?;
            if repetition > 0 {
                samples.push(BenchSample { tok_s: took.tok_s(), memory_bytes_s });
            }
        }
        Ok(samples)
    }

    /// Checks that the sequence fits the context.
    pub(super) fn check<R: ModelRunner>(&self, engine: &Engine<R>) -> Result<(), Error> {
        // Steps need a token before them.
        let depth = if let BenchWork::Decode(_) = self.work { self.depth.max(1) } else { self.depth };
        let (context, needed) = (engine.limits().context, depth.saturating_add(self.tokens()));
        if needed > context {
            return Err(MeasureError::BenchTooLong { case: self.to_string(), needed, context }.into());
        }
        Ok(())
    }

    /// Does the work at the depth, with other tokens for each `repetition`. Calls `begin` when the time begins.
    ///
    /// # Errors
    /// The device fails, or `cancel` is set.
    pub(super) fn once<R: ModelRunner>(
        &self,
        engine: &mut Engine<R>,
        repetition: usize,
        cancel: &Cancel,
        begin: &mut dyn FnMut(&mut Engine<R>) -> Result<(), Error>,
    ) -> Result<Took, Error> {
        let _span = engine.trace().span_with(|| format!("{self}, {repetition}").into());
        let vocab = engine.limits().vocab;
        if repetition == 0 {
            // A case may be repeated, whose prompts are in pages still.
            engine.clear_prefix_cache();
        }
        // Other tokens for each size too.
        let seed = 1 + repetition + 1009 * self.tokens();
        let mut text = tokens(self.depth, vocab, 0);
        if !text.is_empty() {
            // Its pages stay, so that the work begins at the depth.
            engine.generate(request(text.clone(), 0), cancel, &mut |_| ControlFlow::Continue(()))?;
        }
        match self.work {
            BenchWork::Prompt(count) => {
                text.extend(tokens(count, vocab, seed));
                begin(engine)?;
                let start = Instant::now();
                let answer = engine.generate(request(text, 1), cancel, &mut |_| ControlFlow::Continue(()))?;
                let time = start.elapsed();
                if answer.stop_reason == StopReason::Cancelled {
                    return Err(Error::Cancelled);
                }
                Ok(Took { time, tokens: answer.timings.prompt_tokens })
            }
            BenchWork::Decode(count) => {
                if text.is_empty() {
                    text = tokens(1, vocab, seed);
                }
                let requests = vec![request(text, count + 1)];
                let mut running = Running::submit(engine, requests)?;
                running.until_all_generate(engine, cancel)?;
                begin(engine)?;
                let start = Instant::now();
                running.until(engine, cancel, &mut |running| running.least() > count)?;
                Ok(Took { time: start.elapsed(), tokens: count })
            }
        }
    }
}

impl fmt::Display for BenchCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.work {
            BenchWork::Prompt(tokens) => format!("pp{tokens}"),
            BenchWork::Decode(tokens) => format!("tg{tokens}"),
        };
        f.pad(&if self.depth == 0 { text } else { format!("{text} @ d{}", self.depth) })
    }
}

impl Statistics {
    /// Computes the statistics of at least one value.
    #[must_use]
    pub fn of_samples(values: &[f64]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a number of repetitions")]
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Self { mean, deviation }
    }
}

/// Work that was done, and the time it took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    pub(super) time: Duration,
    pub(super) tokens: usize,
}

impl Took {
    /// Returns tokens per second.
    #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
    pub(super) fn tok_s(self) -> f64 {
        self.tokens as f64 / self.time.as_secs_f64()
    }
}

/// Requests that run side by side, and how many tokens each has.
pub(super) struct Running {
    counts: Vec<(RequestId, usize)>,
}

impl Running {
    pub(super) fn submit<R: ModelRunner>(
        engine: &mut Engine<R>,
        requests: Vec<Request>,
    ) -> Result<Self, Error> {
        let counts = requests.into_iter().map(|request| Ok((engine.submit(request)?, 0)));
        Ok(Self { counts: counts.collect::<Result<_, Error>>()? })
    }

    /// Returns the number of tokens that every request has.
    pub(super) fn least(&self) -> usize {
        self.counts.iter().map(|&(_, count)| count).min().unwrap_or(0)
    }

    /// Returns the number of tokens of all requests.
    pub(super) fn sum(&self) -> usize {
        self.counts.iter().map(|&(_, count)| count).sum()
    }

    /// Makes steps until every request has a token, and begins no other step.
    pub(super) fn until_all_generate<R: ModelRunner>(
        &mut self,
        engine: &mut Engine<R>,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        self.steps(Engine::step_alone, engine, cancel, &mut |running| running.least() > 0)
    }

    /// Makes steps until `is_done`. Requests that end before have given too few tokens, which is an error.
    pub(super) fn until<R: ModelRunner>(
        &mut self,
        engine: &mut Engine<R>,
        cancel: &Cancel,
        is_done: &mut dyn FnMut(&Self) -> bool,
    ) -> Result<(), Error> {
        self.steps(Engine::step, engine, cancel, is_done)
    }

    fn steps<R: ModelRunner>(
        &mut self,
        step: fn(&mut Engine<R>) -> bool,
        engine: &mut Engine<R>,
        cancel: &Cancel,
        is_done: &mut dyn FnMut(&Self) -> bool,
    ) -> Result<(), Error> {
        loop {
            while let Some(event) = engine.next_event() {
                let count = self.counts.iter_mut().find(|(id, _)| *id == event.id);
                match (event.kind, count) {
                    (EventKind::Token { .. }, Some((_, count))) => *count += 1,
                    (EventKind::Failed { error }, Some(_)) => return Err(error),
                    _ => {}
                }
            }
            if is_done(self) {
                return Ok(());
            }
            if cancel.is_cancelled() || !step(engine) {
                self.cancel(engine);
                return Err(Error::Cancelled);
            }
        }
    }

    /// Ends all requests.
    pub(super) fn cancel<R: ModelRunner>(&self, engine: &mut Engine<R>) {
        self.counts.iter().for_each(|&(id, _)| _ = engine.cancel(id));
        while engine.next_event().is_some() {}
    }
}

/// Makes a request that no token ends.
pub(super) fn request(prompt: Vec<u32>, max_tokens: usize) -> Request {
    Request { prompt, max_tokens, ..Request::default() }
}

/// Returns pseudorandom token ids, the same for every `seed`. Ids do not change the time.
pub(super) fn tokens(count: usize, vocab: usize, seed: usize) -> Vec<u32> {
    let mut state = u32::try_from(seed).unwrap_or(u32::MAX).wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        // The linear congruential generator of Numerical Recipes; any would do.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % u32::try_from(vocab).unwrap_or(u32::MAX)
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineSettings, scripted::ScriptedModel};

    fn engine() -> Engine<ScriptedModel> {
        let model = ScriptedModel::of_tokens(256, 10, |_| vec![0.0; 10]);
        Engine::new(model, EngineSettings::default()).unwrap()
    }

    fn case(work: BenchWork, depth: usize) -> BenchCase {
        BenchCase { work, depth }
    }

    #[test]
    fn names_are_as_in_llama_bench() {
        assert_eq!(case(BenchWork::Prompt(512), 0).to_string(), "pp512");
        assert_eq!(case(BenchWork::Decode(128), 4096).to_string(), "tg128 @ d4096");
    }

    /// Returns the rows of the calls of a run.
    fn rows(engine: &mut Engine<ScriptedModel>, case: BenchCase, repetitions: usize) -> Vec<usize> {
        let before = engine.runner().calls().len();
        let samples = case.run(engine, repetitions, None, &Cancel::new()).unwrap();
        assert_eq!(samples.len(), repetitions);
        assert!(samples.iter().all(|sample| sample.tok_s > 0.0 && sample.memory_bytes_s.is_none()));
        engine.runner().calls()[before..].iter().map(|&(_, rows)| rows).collect()
    }

    #[test]
    fn the_work_runs_at_its_depth_after_one_warm_up() {
        let mut engine = engine();
        // The depth, its last page again for each repetition, and one token at a time.
        let found = rows(&mut engine, case(BenchWork::Decode(2), 65), 2);
        let repetition = [1, 1, 1, 1];
        assert_eq!(
            found,
            [vec![8; 8], repetition.to_vec(), repetition.to_vec(), repetition.to_vec()].concat()
        );
        assert_eq!(
            rows(&mut engine, case(BenchWork::Prompt(7), 64), 1),
            [vec![8; 8], vec![7], vec![8; 8], vec![7]].concat()
        );
        assert_eq!(rows(&mut engine, case(BenchWork::Decode(3), 0), 1), [1; 8]);
    }

    #[test]
    fn a_case_that_is_repeated_runs_its_prompts_again() {
        let mut engine = engine();
        for _ in 0..2 {
            assert_eq!(rows(&mut engine, case(BenchWork::Prompt(128), 0), 1), [8; 32]);
        }
    }

    #[test]
    fn a_sequence_longer_than_the_context_is_refused() {
        let error = case(BenchWork::Prompt(252), 5).run(&mut engine(), 1, None, &Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pp252 @ d5 needs 257 positions, the context has 256\nhint: lower -p, -n or -d, raise --ctx-size if it was given, or compile the bundle again with a larger one"
        );
    }

    #[test]
    fn steps_at_no_depth_follow_a_token() {
        let run = |steps| case(BenchWork::Decode(steps), 0).run(&mut engine(), 1, None, &Cancel::new());
        assert_eq!(run(255).unwrap().len(), 1);
        let error = run(256).unwrap_err().to_string();
        assert!(error.starts_with("tg256 needs 257 positions, the context has 256\nhint: "), "{error}");
    }

    #[test]
    fn cancelled_work_gives_no_sample() {
        let cancel = Cancel::new();
        cancel.cancel();
        let error = case(BenchWork::Decode(3), 0).run(&mut engine(), 1, None, &cancel).unwrap_err();
        assert!(matches!(error, Error::Cancelled));
    }

    #[test]
    fn deviations_have_the_divisor_of_samples() {
        assert_eq!(Statistics::of_samples(&[2.0]), Statistics { mean: 2.0, deviation: 0.0 });
        let two = Statistics::of_samples(&[1.0, 3.0]);
        assert_eq!((two.mean, two.deviation), (2.0, 2f64.sqrt()));
    }
}
