//! Steps: one call of the device, for the requests that run.
//!
//! On a device that can, a step is begun before the one before has ended, where it is known what it will run: the same
//! requests, each with the token that the device finds for it. What it gives a request that has ended meanwhile is dropped.

use std::{sync::Arc, time::Duration};

use super::{
    chooser::Picked,
    core::Engine,
    planned::{Part, Step},
    request::{Event, EventKind, RequestId},
    schedule::plan,
    sequence::Sequence,
};
use crate::{
    error::{EngineError, Error, SharedCause},
    model::{Batch, ModelRunner, SelectedRow, SequenceRows},
    trace::{Detail, Span},
};

/// What a step gave one request.
struct Share {
    /// The index in `running`.
    index: usize,
    rows: usize,
    picked: Result<Vec<Picked>, Error>,
}

impl<R: ModelRunner> Engine<R> {
    /// Runs one call of the device to its end. Returns false if there is nothing to run.
    ///
    /// A GPU may have begun the next one then.
    pub fn step(&mut self) -> bool {
        self.run_step(true, &mut || ())
    }

    /// Runs one call of the device, and leaves none that was begun: what the next one takes can be measured.
    pub(crate) fn step_alone(&mut self) -> bool {
        self.run_step(false, &mut || ())
    }

    /// Runs one call of the device. With `goes_on`, the next one may be begun before it has ended. Calls `meanwhile` while the device
    /// computes, unless there is nothing to run or the call fails before.
    pub(super) fn run_step(&mut self, goes_on: bool, meanwhile: &mut dyn FnMut()) -> bool {
        let start = (self.clock)();
        let mut span = self.trace.span("step");
        self.drop_unwanted();
        let (step, is_begun) = match self.ahead.take() {
            Some(step) => (step, true),
            None => {
                self.admit();
                let Some(step) = self.plan() else {
                    span.discard();
                    return false;
                };
                (step, false)
            }
        };
        self.describe(&step, &mut span);
        self.serve(&step);
        let begun = if is_begun { Ok(()) } else { self.begin(&step) };
        let result = begun.and_then(|()| {
            let next = if goes_on { self.begin_next(&step) } else { None };
            meanwhile();
            self.ahead = next;
            self.runner.end()
        });
        self.finish_step(&step, start, result);
        true
    }

    /// Ends the step that was begun before its turn, if there is one, so that the model can be used.
    pub(super) fn settle(&mut self) {
        self.drop_unwanted();
        if let Some(step) = self.ahead.take() {
            let start = (self.clock)();
            let mut span = self.trace.span("step");
            self.describe(&step, &mut span);
            self.serve(&step);
            let result = self.runner.end();
            self.finish_step(&step, start, result);
        }
    }

    /// Ends the step that was begun before its turn if nobody waits for it any longer.
    fn drop_unwanted(&mut self) {
        let is_wanted = |step: &Step| step.parts.iter().any(|part| self.index(part.id).is_some());
        if self.ahead.as_ref().is_some_and(|step| !is_wanted(step)) {
            self.ahead = None;
            self.work.steps += 1;
            // Whoever is next gets the error of a device that has failed.
            let _ = self.runner.end();
        }
    }

    /// Returns the place of a request that runs.
    fn index(&self, id: RequestId) -> Option<usize> {
        self.running.iter().position(|sequence| sequence.id == id)
    }

    /// Names the phase of a step after its rows.
    fn describe(&self, step: &Step, span: &mut Span) {
        if !self.trace.is_on() {
            return;
        }
        let is_prompt =
            |part: &&Part| self.index(part.id).is_some_and(|index| self.running[index].is_prompt());
        let sequences = step.parts.len();
        span.rename(match step.parts.iter().filter(is_prompt).count() {
            0 => "decode step",
            prompts if prompts == sequences => "prompt step",
            _ => "mixed step",
        });
        span.set(Detail::Rows { rows: step.rows() as u32, sequences: sequences as u32 });
    }

    /// Lets waiting requests run, in order, while pages can be promised.
    fn admit(&mut self) {
        while self.running.len() < self.most
            && let Some(mut sequence) = self.waiting.pop_front()
        {
            if !sequence.admit(&mut self.memory, self.work.steps) {
                self.waiting.push_front(sequence);
                return;
            }
            self.running.push(sequence);
        }
    }

    /// Chooses what runs next; `None` if there is nothing.
    fn plan(&self) -> Option<Step> {
        let drafts: Vec<Vec<u32>> = self.running.iter().map(Sequence::draft).collect();
        let wants: Vec<_> =
            self.running.iter().zip(&drafts).map(|(sequence, drafts)| sequence.want(drafts.len())).collect();
        let plan = plan(&self.runner.limits().steps, self.memory.rows(), &wants)?;
        let planned = self.running.iter().zip(drafts).zip(plan.rows.into_iter().zip(plan.turns));
        let parts =
            planned.filter(|&(_, (rows, _))| rows > 0).map(|((sequence, drafts), (rows, has_turn))| {
                let selected = sequence.selected(rows).len();
                Part { id: sequence.id, rows, selected, drafts, has_turn }
            });
        Some(Step { size: plan.size, parts: parts.collect() })
    }

    /// Counts a step and the turns that it is.
    fn serve(&mut self, step: &Step) {
        self.work.steps += 1;
        for part in step.parts.iter().filter(|part| part.has_turn) {
            if let Some(index) = self.index(part.id) {
                self.running[index].served = self.work.steps;
            }
        }
    }

    /// Begins a step of requests that all run.
    fn begin(&mut self, step: &Step) -> Result<(), Error> {
        let Self { runner, memory, running, .. } = self;
        let mut parts = step.parts.iter().peekable();
        let mut sequences = Vec::with_capacity(step.parts.len());
        for sequence in running {
            if let Some(part) = parts.next_if(|part| part.id == sequence.id) {
                let end = sequence.end(part.rows);
                memory.grow(&mut sequence.lease, end);
                sequence.chooser.prepare();
                sequences.push(sequence.rows(part.rows, &part.drafts));
            }
        }
        runner.begin(&Batch { size: step.size, sequences })
    }

    /// Begins the step after one that was begun, if it is known what it will run and the device can.
    fn begin_next(&mut self, step: &Step) -> Option<Step> {
        // Two steps touch the pages of a call with two rows: only then so many are promised.
        if self.runner.is_host() || self.memory.rows() < 2 {
            return None;
        }
        let fits = |sequence: &Sequence| sequence.fits(&self.memory);
        if self.running.len() < self.most && self.waiting.front().is_some_and(fits) {
            return None;
        }
        let follows = |(sequence, part): (&Sequence, &Part)| {
            part.id == sequence.id && (part.rows, part.selected) == (1, 1) && sequence.follows_itself()
        };
        let is_known = self.running.len() == step.parts.len();
        if !is_known || !self.running.iter().zip(&step.parts).all(follows) {
            return None;
        }
        let Self { runner, memory, running, .. } = self;
        let sequences = running.iter_mut().map(|sequence| {
            let end = sequence.end(2);
            memory.grow(&mut sequence.lease, end);
            sequence.next_rows()
        });
        let sequences: Vec<SequenceRows<'_>> = sequences.collect();
        // What fails now fails again when it is its turn.
        let is_begun = runner.begin_next(&Batch { size: step.size, sequences }).unwrap_or(false);
        let part = |part: &Part| Part { drafts: vec![], has_turn: true, ..*part };
        is_begun.then(|| Step { size: step.size, parts: step.parts.iter().map(part).collect() })
    }

    /// Gives the result of a step to its requests.
    fn finish_step(&mut self, step: &Step, start: Duration, result: Result<Vec<SelectedRow>, Error>) {
        let shares = self.choose(step, result);
        let time = (self.clock)().saturating_sub(start);
        self.work.time += time;
        self.work.rows += step.rows() as u64;
        self.measure(time);
        self.apply(shares);
    }

    /// Picks tokens. Each request of a step that fails gets the error.
    fn choose(&mut self, step: &Step, result: Result<Vec<SelectedRow>, Error>) -> Vec<Share> {
        let expected = step.parts.iter().map(|part| part.selected).sum();
        let result = result.and_then(|rows| match rows.len() {
            found if found == expected => Ok(rows),
            found => Err(EngineError::WrongRows { found, expected }.into()),
        });
        let best = match result {
            Ok(best) => best,
            Err(error) => return self.fail(step, error),
        };
        let _span = self.trace.span("choose tokens");
        let mut first = 0;
        let mut shares = Vec::new();
        for part in &step.parts {
            let rows = first..first + part.selected;
            first = rows.end;
            // A request may have ended since the step was begun.
            let Some(index) = self.index(part.id) else { continue };
            let Self { runner, running, .. } = self;
            let picked = pick(runner, &mut running[index], &part.drafts, rows.start, &best[rows]);
            shares.push(Share { index, rows: part.rows, picked });
        }
        let failed = shares.iter().filter_map(|share| share.picked.as_ref().err()).find_map(failed_read);
        self.count_failure(failed);
        shares
    }

    /// Gives every request of a step its error.
    fn fail(&mut self, step: &Step, error: Error) -> Vec<Share> {
        if self.ahead.take().is_some() {
            self.work.steps += 1;
            // It goes on from what has failed.
            let _ = self.runner.end();
        }
        let planned: Vec<(usize, usize)> =
            step.parts.iter().filter_map(|part| Some((self.index(part.id)?, part.rows))).collect();
        let (requests, source): (usize, SharedCause) = (planned.len(), Arc::new(error));
        self.count_failure(Some(source.clone()));
        let shares = planned.into_iter().map(|(index, rows)| {
            let error = EngineError::of_step(requests, &source);
            Share { index, rows, picked: Err(error.into()) }
        });
        shares.collect()
    }

    fn count_failure(&mut self, cause: Option<SharedCause>) {
        self.failures = if cause.is_some() { self.failures + 1 } else { 0 };
        let is_lost = cause.as_ref().is_some_and(|cause| EngineError::lost(cause).is_some());
        if is_lost || self.failures >= self.settings.failures.max(1) {
            self.stopped = cause;
        }
    }

    /// Adds the time of a step to every request.
    fn measure(&mut self, time: Duration) {
        self.waiting.iter_mut().for_each(|sequence| sequence.timings.queued += time);
        for sequence in &mut self.running {
            let is_prompt = sequence.is_prompt();
            let Sequence { timings, .. } = sequence;
            *(if is_prompt { &mut timings.prefill } else { &mut timings.decode }) += time;
        }
    }

    /// Adds the results of a step to its requests, and ends those that are complete or failed.
    fn apply(&mut self, shares: Vec<Share>) {
        let mut ended = Vec::new();
        for Share { index, rows, picked } in shares {
            let sequence = &mut self.running[index];
            match picked {
                Ok(picked) => {
                    let before = sequence.timings;
                    let end = sequence.advance(&mut self.memory, rows, &picked);
                    self.work.add(&before, &sequence.timings, picked.len());
                    let id = sequence.id;
                    let tokens = picked
                        .into_iter()
                        .map(|(token, logprobs)| Event { id, kind: EventKind::Token { token, logprobs } });
                    self.events.extend(tokens);
                    ended.extend(end.map(|reason| (index, Ok(reason))));
                }
                Err(error) => ended.push((index, Err(error))),
            }
        }
        // From the last to the first, so that indices stay what they are; the events are in the order of requests.
        let ended: Vec<_> =
            ended.into_iter().rev().map(|(index, end)| (self.running.remove(index), end)).collect();
        for (sequence, end) in ended.into_iter().rev() {
            match end {
                Ok(reason) => self.finish(sequence, reason),
                Err(error) => self.end(sequence, EventKind::Failed { error }),
            }
        }
        if let Some(cause) = self.stopped.clone() {
            let rest: Vec<Sequence> = self.running.drain(..).chain(self.waiting.drain(..)).collect();
            for sequence in rest {
                let error = self.stopped_by(&cause);
                self.end(sequence, EventKind::Failed { error });
            }
        }
    }
}

/// Picks the tokens that follow a request's rows: one, and another for each draft that is what was picked.
fn pick<R: ModelRunner>(
    runner: &mut R,
    sequence: &mut Sequence,
    drafts: &[u32],
    first: usize,
    best: &[SelectedRow],
) -> Result<Vec<Picked>, Error> {
    let mut picked: Vec<Picked> = Vec::new();
    for (offset, row) in best.iter().enumerate() {
        picked.push(sequence.chooser.choose(runner, first + offset, *row)?);
        if sequence.end_after(&picked).is_some() || drafts.get(offset) != Some(&picked[offset].0) {
            break;
        }
    }
    Ok(picked)
}

/// Returns the device's answer if reading logits failed.
fn failed_read(error: &Error) -> Option<SharedCause> {
    match error {
        Error::Engine(EngineError::StepFailed { source, .. }) => Some(source.clone()),
        Error::Engine(lost @ EngineError::DeviceLost { .. }) => Some(Arc::new(Error::from(lost.clone()))),
        _ => None,
    }
}
