//! Where a model's time goes, by dispatch.

use std::{collections::HashMap, time::Duration};

use mlxcel_artifacts::Cancel;

use super::{batch::BatchCase, bench::BenchCase};
use crate::{
    engine::Engine,
    error::{Error, MeasureError},
    model::ModelRunner,
    trace::{Dispatch, Trace},
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
        let mut recorded = Recorded::default();
        let took = case.once(engine, 1, cancel, &mut |engine| recorded.begin(engine));
        recorded.end(case.to_string(), case.middle(), engine, took.map(|took| took.time))
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
        let mut recorded = Recorded::default();
        let took = case.once(engine, 1, cancel, &mut |engine| recorded.begin(engine));
        recorded.end(case.to_string(), case.positions(), engine, took.map(|took| took.generate))
    }
}

/// The dispatches of a timeline while some work is done.
#[derive(Debug, Default)]
struct Recorded {
    trace: Trace,
    /// True if the timeline is for this work alone.
    is_own: bool,
    /// Dispatches before the work.
    before: HashMap<String, Dispatch>,
}

impl Recorded {
    /// Begins with a timeline of sums alone, unless the device is recorded already.
    fn begin<R: ModelRunner>(&mut self, engine: &mut Engine<R>) -> Result<(), Error> {
        self.trace = engine.trace();
        if !self.trace.is_on() {
            let trace = Trace::with_limit(0);
            engine.runner().start_trace(&trace)?;
            (self.trace, self.is_own) = (trace, true);
        }
        let before = self.trace.dispatches().into_iter();
        self.before = before.map(|dispatch| (dispatch.name.clone(), dispatch)).collect();
        Ok(())
    }

    /// Ends the recording and takes the sums of the work.
    fn end<R: ModelRunner>(
        self,
        work: String,
        positions: f64,
        engine: &mut Engine<R>,
        took: Result<Duration, Error>,
    ) -> Result<Profile, Error> {
        let Self { trace, is_own, before } = self;
        if is_own {
            engine.runner().end_trace();
        }
        let total = took?;
        let records = trace.lost();
        if records > 0 {
            let device = engine.device().name.clone();
            return Err(MeasureError::LostRecords { device, records }.into());
        }
        let since = |dispatch: Dispatch| match before.get(&dispatch.name) {
            None => dispatch,
            Some(before) => difference(dispatch, before),
        };
        let dispatches = trace.dispatches().into_iter().map(since);
        let mut dispatches: Vec<Dispatch> = dispatches.filter(|dispatch| dispatch.calls > 0).collect();
        dispatches.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        Ok(Profile { work, positions, total, dispatches })
    }
}

/// Returns the calls of a dispatch since an earlier time.
fn difference(now: Dispatch, before: &Dispatch) -> Dispatch {
    let Dispatch { name, calls, time, functions } = now;
    let since = |(function, calls): (String, u64)| {
        let earlier = before.functions.get(&function).copied().unwrap_or(0);
        (function, calls - earlier)
    };
    let functions = functions.into_iter().map(since).filter(|(_, calls)| *calls > 0).collect();
    Dispatch { name, calls: calls - before.calls, time: time - before.time, functions }
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
