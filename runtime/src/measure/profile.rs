//! Where a model's time goes, by dispatch.

use std::time::Duration;

use mlxcel_artifacts::Cancel;

use super::{batch::BatchCase, bench::BenchCase};
use crate::{
    engine::Engine,
    error::Error,
    model::{Dispatch, ModelRunner},
};

/// Time of some work, by dispatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The work, as tables name it.
    pub work: String,
    /// The positions of the cache before a call, on average and of all its sequences together.
    pub positions: f64,
    /// The time of the whole work.
    pub total: Duration,
    /// Times by function, the longest first.
    pub dispatches: Vec<Dispatch>,
}

impl Profile {
    /// Runs the work of `case` once and records its dispatches.
    ///
    /// # Errors
    /// The device cannot record a profile, or [`BenchCase::run`] would fail.
    pub fn record<R: ModelRunner>(
        case: &BenchCase,
        engine: &mut Engine<R>,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        case.check(engine)?;
        case.once(engine, 0, cancel, &mut |_| Ok(()))?;
        let took = case.once(engine, 1, cancel, &mut |engine| engine.runner().start_profile());
        Self::end(case.to_string(), case.middle(), engine, took.map(|took| took.time))
    }

    /// Runs `case` once and records the dispatches while its sequences generate.
    ///
    /// # Errors
    /// The device cannot record a profile, or [`BatchCase::run`] would fail.
    pub fn record_batch<R: ModelRunner>(
        case: &BatchCase,
        engine: &mut Engine<R>,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        case.warm_up(engine, cancel)?;
        let took = case.once(engine, 1, cancel, &mut |engine| engine.runner().start_profile());
        Self::end(case.to_string(), case.positions(), engine, took.map(|took| took.generate))
    }

    fn end<R: ModelRunner>(
        work: String,
        positions: f64,
        engine: &mut Engine<R>,
        took: Result<Duration, Error>,
    ) -> Result<Self, Error> {
        let mut dispatches = engine.runner().end_profile()?;
        dispatches.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        Ok(Self { work, positions, total: took?, dispatches })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineSettings, measure::bench::BenchWork, scripted::ScriptedModel};

    #[test]
    fn a_device_that_cannot_record_is_refused() {
        let case = BenchCase { work: BenchWork::Decode(1), depth: 0 };
        let model = ScriptedModel::of_tokens(64, 10, |_| vec![0.0; 10]);
        let mut engine = Engine::new(model, EngineSettings::default()).unwrap();
        let error = Profile::record(&case, &mut engine, &Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "scripted keeps no profile of dispatches\nhint: choose --device local-task"
        );
    }
}
