//! What each model did over the last minutes.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use mlxcel_runtime::engine::{PoolUsage, Usage, Work};
use serde::Serialize;

/// The time between two samples.
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

/// Samples that are kept of each model: those of 15 minutes, and the one before.
const KEPT: usize = 181;

/// Samples of a minute.
const OF_A_MINUTE: usize = 12;

/// Samples of all models, by their names.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<HashMap<String, VecDeque<Sample>>>);

/// What a model had done at a moment, and what it had.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: f64,
    waiting: usize,
    running: usize,
    cache_in_use: f64,
    work: Work,
}

/// What a model did between two samples, and what it had at the second.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    /// Seconds since 1970.
    at: f64,
    prompt_tokens_per_second: f64,
    generated_tokens_per_second: f64,
    waiting: usize,
    running: usize,
    rows_per_step: Option<f64>,
    /// From 0 to 1, of the pool that is fullest.
    cache_in_use: f64,
}

impl History {
    /// Adds a sample of each model at `at`, in seconds since 1970, and forgets models that are not among them.
    pub(crate) fn sample(&self, at: f64, models: &[(&str, Usage)]) {
        let mut history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        history.retain(|name, _| models.iter().any(|(model, _)| model == name));
        for (name, usage) in models {
            let samples = history.entry((*name).to_owned()).or_default();
            if samples.len() == KEPT {
                samples.pop_front();
            }
            let cache_in_use = usage.pools.iter().map(in_use).fold(0.0, f64::max);
            let Usage { waiting, running, work, .. } = *usage;
            samples.push_back(Sample { at, waiting, running, cache_in_use, work });
        }
    }

    /// Returns what a model did, the oldest first.
    pub(crate) fn points(&self, model: &str) -> Vec<Point> {
        let history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = history.get(model).into_iter().flatten();
        samples.clone().zip(samples.skip(1)).map(|(before, after)| after.since(before)).collect()
    }

    /// Returns the rows of a step over the last minute. `None` if there was none.
    pub(crate) fn rows_per_step(&self, model: &str, now: &Work) -> Option<f64> {
        let history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = history.get(model)?;
        let before = samples.get(samples.len().saturating_sub(OF_A_MINUTE))?;
        ratio(&difference(now, &before.work))
    }
}

impl Sample {
    fn since(&self, before: &Self) -> Point {
        let done = difference(&self.work, &before.work);
        let seconds = self.at - before.at;
        let rate = |tokens: u64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
        Point {
            at: self.at,
            prompt_tokens_per_second: rate(done.prompt_tokens),
            generated_tokens_per_second: rate(done.generated_tokens),
            waiting: self.waiting,
            running: self.running,
            rows_per_step: ratio(&done),
            cache_in_use: self.cache_in_use,
        }
    }
}

/// Returns the work between two moments. A bundle that was exchanged begins at 0.
fn difference(after: &Work, before: &Work) -> Work {
    if after.steps < before.steps {
        return *after;
    }
    Work {
        steps: after.steps - before.steps,
        rows: after.rows.saturating_sub(before.rows),
        prompt_tokens: after.prompt_tokens.saturating_sub(before.prompt_tokens),
        generated_tokens: after.generated_tokens.saturating_sub(before.generated_tokens),
        ..Work::default()
    }
}

fn ratio(work: &Work) -> Option<f64> {
    (work.steps > 0).then(|| work.rows as f64 / work.steps as f64)
}

fn in_use(pool: &PoolUsage) -> f64 {
    (pool.pages - pool.free - pool.cached) as f64 / pool.pages.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(steps: u64, generated_tokens: u64) -> Usage {
        let work = Work { steps, rows: steps * 3, generated_tokens, ..Work::default() };
        let pools = vec![PoolUsage { pages: 10, free: 4, cached: 1 }];
        Usage { waiting: 2, running: 1, pools, work, ..Usage::default() }
    }

    #[test]
    fn points_are_differences_of_samples() {
        let history = History::default();
        assert_eq!((history.points("a"), history.rows_per_step("a", &Work::default())), (vec![], None));
        for (at, steps, generated) in [(100.0, 10, 5), (105.0, 10, 5), (110.0, 20, 105)] {
            history.sample(at, &[("a", usage(steps, generated))]);
        }
        let point = |at, generated_tokens_per_second, rows_per_step| Point {
            at,
            prompt_tokens_per_second: 0.0,
            generated_tokens_per_second,
            waiting: 2,
            running: 1,
            rows_per_step,
            cache_in_use: 0.5,
        };
        assert_eq!(history.points("a"), [point(105.0, 0.0, None), point(110.0, 20.0, Some(3.0))]);
        assert_eq!(history.rows_per_step("a", &usage(30, 0).work), Some(3.0));
        // Another bundle under the same name counts from 0.
        history.sample(115.0, &[("a", usage(1, 10))]);
        assert_eq!(history.points("a")[2], point(115.0, 2.0, Some(3.0)));
    }

    #[test]
    fn old_samples_and_models_are_forgotten() {
        let history = History::default();
        for index in 0..300u32 {
            history.sample(f64::from(index), &[("a", usage(u64::from(index), 0)), ("b", usage(0, 0))]);
        }
        assert_eq!(history.points("a").len(), 180);
        assert_eq!(history.points("a")[179].at, 299.0);
        history.sample(300.0, &[("a", usage(300, 0))]);
        assert_eq!((history.points("a").len(), history.points("b").len()), (180, 0));
    }
}
