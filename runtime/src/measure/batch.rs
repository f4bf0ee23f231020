//! Speed of several sequences at once, in the form of llama-batched-bench.

use std::{
    fmt,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Cancel;

use super::bench::{Running, request, tokens};
use crate::{
    engine::Engine,
    error::{Error, MeasureError},
    model::ModelRunner,
};

/// Prompts that are run at once, then answers that are generated at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchCase {
    /// Tokens of each prompt (PP).
    pub prompt: usize,
    /// Tokens generated for each sequence (TG).
    pub generate: usize,
    /// Sequences (B).
    pub sequences: usize,
}

/// The times of one [`BatchCase`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSample {
    /// Time of all prompts.
    pub prompt: Duration,
    /// Time of generating for all sequences.
    pub generate: Duration,
}

impl BatchCase {
    /// Returns the tokens of all sequences (N_KV).
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.sequences * (self.prompt + self.generate)
    }

    /// Runs a shorter case to warm up, then this one `repetitions` times.
    ///
    /// Every sequence has tokens of its own, and other ones in each repetition. All prompts are run before the first token
    /// is generated, and all sequences generate until the time ends.
    ///
    /// # Errors
    /// A sequence does not fit the context, all together do not fit the cache, the device fails, or `cancel` is set.
    pub fn run<R: ModelRunner>(
        &self,
        engine: &mut Engine<R>,
        repetitions: usize,
        cancel: &Cancel,
    ) -> Result<Vec<BatchSample>, Error> {
        self.warm_up(engine, cancel)?;
        (1..=repetitions).map(|repetition| self.once(engine, repetition, cancel, &mut |_| Ok(()))).collect()
    }

    /// Checks that the case fits, and runs a shorter one.
    pub(super) fn warm_up<R: ModelRunner>(
        &self,
        engine: &mut Engine<R>,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        self.check(engine)?;
        let shorter = Self { prompt: self.prompt.min(16), generate: 1, ..*self };
        shorter.once(engine, 0, cancel, &mut |_| Ok(())).map(drop)
    }

    /// Returns the positions of the cache in the middle of generating, of all sequences.
    #[expect(clippy::cast_precision_loss, reason = "a number of positions")]
    pub(super) fn positions(&self) -> f64 {
        self.sequences as f64 * (self.prompt as f64 + self.generate as f64 / 2.0)
    }

    /// Tokens that a sequence may generate: those that are asked for, and those that it gets before all have begun.
    fn most(&self) -> usize {
        self.generate + self.sequences + 1
    }

    fn check<R: ModelRunner>(&self, engine: &Engine<R>) -> Result<(), Error> {
        let &Self { prompt, sequences, .. } = self;
        let limits = engine.limits();
        let (context, needed) = (limits.context, prompt.saturating_add(self.most()));
        let case = self.to_string();
        if needed > context {
            return Err(MeasureError::BenchTooLong { case, needed, context }.into());
        }
        let fits = |pool: &crate::model::PoolLimits| {
            pool.needed(needed, limits.rows()).saturating_mul(sequences) <= pool.pages
        };
        if sequences > limits.sequences() || !limits.pools.iter().all(fits) {
            return Err(MeasureError::BenchTooMany { case, sequences: limits.sequences() }.into());
        }
        Ok(())
    }

    /// Runs the case, with other tokens for each `repetition`. Calls `begin` when the time of generating begins.
    pub(super) fn once<R: ModelRunner>(
        &self,
        engine: &mut Engine<R>,
        repetition: usize,
        cancel: &Cancel,
        begin: &mut dyn FnMut(&mut Engine<R>) -> Result<(), Error>,
    ) -> Result<BatchSample, Error> {
        let _span = engine.trace().span_with(|| format!("{self}, {repetition}").into());
        let vocab = engine.limits().vocab;
        // Cases before may have had prompts that begin alike.
        engine.clear_prefix_cache();
        let prompts: Vec<Vec<u32>> = (0..self.sequences)
            .map(|sequence| tokens(self.prompt, vocab, 1 + repetition * self.sequences + sequence))
            .collect();
        let requests = |most| prompts.iter().map(|prompt| request(prompt.clone(), most)).collect();

        let start = Instant::now();
        let mut running = Running::submit(engine, requests(1))?;
        running.until_all_generate(engine, cancel)?;
        let prompt = start.elapsed();

        // Pages of the prompts are there still.
        let mut running = Running::submit(engine, requests(self.most()))?;
        running.until_all_generate(engine, cancel)?;
        let before = running.sum();
        begin(engine)?;
        let start = Instant::now();
        let wanted = before + self.generate * self.sequences;
        running.until(engine, cancel, &mut |running| running.sum() >= wanted)?;
        let generate = start.elapsed();
        running.cancel(engine);
        Ok(BatchSample { prompt, generate })
    }
}

impl fmt::Display for BatchCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pp{} + tg{} × {}", self.prompt, self.generate, self.sequences)
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_artifacts::{Digest, entry::CallSizes};

    use super::*;
    use crate::{
        EngineSettings,
        model::{ModelLimits, PoolLimits},
        scripted::ScriptedModel,
    };

    fn engine(pages: usize) -> Engine<ScriptedModel> {
        let size = |rows, sequences| CallSizes {
            rows,
            sequences,
            selected: sequences,
            uniform: false,
            in_place: false,
        };
        let limits = ModelLimits {
            model: Digest::of(b"model"),
            context: 200,
            vocab: 50,
            pools: vec![PoolLimits { window: None, pages, page_bytes: 1 }],
            steps: vec![size(1, 1), size(8, 8), size(128, 8)],
            exact: true,
        };
        let model =
            ScriptedModel::new(limits, |_, state| (0..50).map(|id| (state >> id & 1) as f32).collect());
        Engine::new(model, EngineSettings::default()).unwrap()
    }

    #[test]
    fn sequences_generate_side_by_side() {
        let mut engine = engine(40);
        let case = BatchCase { prompt: 100, generate: 20, sequences: 4 };
        assert_eq!(case.tokens(), 480);
        let samples = case.run(&mut engine, 2, &Cancel::new()).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(samples.iter().all(|sample| !sample.prompt.is_zero() && !sample.generate.is_zero()));
        assert!(engine.is_idle());
        let (_, rows): (Vec<_>, Vec<usize>) = engine.runner().calls().iter().copied().unzip();
        // Once all have begun, every step has a row of each.
        let steps = rows.iter().filter(|&&rows| rows == 4).count();
        assert!((2 * 18..2 * 22).contains(&steps), "{rows:?}");
        // The second time, a prompt runs its last 36 tokens alone. Before it, 4 prompts of 16 run twice.
        let prompts: usize = rows.iter().filter(|&&rows| rows > 8).sum();
        let expected = 2 * 4 * 136 + 2 * 4 * 16;
        assert!((expected - 60..expected + 60).contains(&prompts), "{prompts} {rows:?}");
    }

    #[test]
    fn more_than_fits_is_refused() {
        let refused =
            |case: BatchCase, pages| case.run(&mut engine(pages), 1, &Cancel::new()).unwrap_err().to_string();
        let case = BatchCase { prompt: 100, generate: 20, sequences: 4 };
        assert_eq!(
            refused(BatchCase { prompt: 180, ..case }, 40),
            "pp180 + tg20 × 4 needs 205 positions, the context has 200\n\
             hint: lower -p, -n or -d, raise --ctx-size if it was given, or compile the bundle again with a larger one"
        );
        let many = "does not fit the cache or a call, which takes up to 8 sequences\n\
                    hint: lower --parallel, or give a larger --cache-size";
        assert_eq!(refused(case, 7), format!("pp100 + tg20 × 4 {many}"));
        assert_eq!(refused(BatchCase { sequences: 9, ..case }, 400), format!("pp100 + tg20 × 9 {many}"));
    }
}
