//! The synchronous engine: one call of the device at a time.

use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    chooser::{Chooser, Picked},
    generation::StopReason,
    memory::Memory,
    prefix::PageKeys,
    request::{Event, EventKind, Request, RequestId},
    schedule::{Plan, plan},
    sequence::Sequence,
    usage::{PoolUsage, Usage, Work},
};
use crate::{
    device::DeviceInfo,
    error::{EngineError, Error, SharedCause},
    model::{Batch, ModelLimits, ModelRunner, SelectedRow, SequenceRows},
    trace::{Detail, Span, Trace},
};

/// Settings of an [`Engine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineSettings {
    /// Requests that may wait.
    pub waiting: usize,
    /// Steps that may fail one after another before the engine stops; at least 1.
    pub failures: usize,
    /// True to keep whole pages of earlier requests while there is room.
    pub prefix_cache: bool,
}

impl Default for EngineSettings {
    /// Returns settings for a server.
    fn default() -> Self {
        Self { waiting: 256, failures: 3, prefix_cache: true }
    }
}

/// Answers to many requests at a time.
pub struct Engine<R> {
    pub(super) runner: R,
    pub(super) settings: EngineSettings,
    pub(super) memory: Memory,
    /// The most requests that run at a time.
    most: usize,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    events: VecDeque<Event>,
    next_id: u64,
    work: Work,
    /// Steps that failed since the last one that did not, and the last error.
    failures: usize,
    stopped: Option<SharedCause>,
    /// That of the model.
    trace: Trace,
    clock: Box<dyn Fn() -> Duration + Send>,
}

/// What a step gave one request.
struct Share {
    /// The index in `running`.
    index: usize,
    rows: usize,
    picked: Result<Vec<Picked>, Error>,
}

impl<R: ModelRunner> Engine<R> {
    /// Makes an engine over a model.
    ///
    /// # Errors
    /// The model's limits allow no request.
    pub fn new(runner: R, settings: EngineSettings) -> Result<Self, Error> {
        let start = Instant::now();
        Self::with_clock(runner, settings, move || start.elapsed())
    }

    /// Makes an engine that measures time with `clock`, which returns the time since any fixed moment.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn with_clock(
        runner: R,
        settings: EngineSettings,
        clock: impl Fn() -> Duration + Send + 'static,
    ) -> Result<Self, Error> {
        let limits = runner.limits();
        limits.check()?;
        let most = limits.sequences();
        Ok(Self {
            memory: Memory::new(limits),
            trace: runner.trace(),
            runner,
            settings,
            most,
            waiting: VecDeque::new(),
            running: vec![],
            events: VecDeque::new(),
            next_id: 0,
            work: Work::default(),
            failures: 0,
            stopped: None,
            clock: Box::new(clock),
        })
    }

    /// Checks a request and lets it wait for its turn.
    ///
    /// # Errors
    /// The request is refused, the queue is full, or the engine has stopped. Other requests go on.
    pub fn submit(&mut self, request: Request) -> Result<RequestId, Error> {
        self.submit_after(request, Duration::ZERO)
    }

    /// Submits a request that was `queued` so long elsewhere.
    pub(super) fn submit_after(&mut self, request: Request, queued: Duration) -> Result<RequestId, Error> {
        if let Some(cause) = &self.stopped {
            return Err(self.stopped_by(cause));
        }
        let limits = self.runner.limits();
        let sampler = request.check(limits, &self.memory)?;
        let (waiting, limit) = (self.waiting.len(), self.settings.waiting);
        if waiting >= limit {
            return Err(EngineError::QueueFull { waiting, limit }.into());
        }
        let chooser = Chooser::new(&request, sampler)?;
        let keys = self.settings.prefix_cache.then(|| PageKeys::new(limits.model, &request.prompt));
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let mut sequence = Sequence::new(id, request, chooser, keys, limits.context);
        sequence.timings.queued = queued;
        self.waiting.push_back(sequence);
        Ok(id)
    }

    /// Ends a request and gives back its pages. Returns false if it has ended already.
    ///
    /// Tokens that were not taken yet are dropped.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let waiting = self.waiting.iter().position(|sequence| sequence.id == id);
        let sequence = match waiting {
            Some(index) => self.waiting.remove(index),
            None => {
                let running = self.running.iter().position(|sequence| sequence.id == id);
                running.map(|index| self.running.remove(index))
            }
        };
        let Some(sequence) = sequence else {
            return false;
        };
        self.events.retain(|event| event.id != id);
        self.finish(sequence, StopReason::Cancelled);
        true
    }

    /// Makes one call of the device. Returns false if there is nothing to run.
    pub fn step(&mut self) -> bool {
        self.step_during(&mut || ())
    }

    /// Makes one call of the device, as [`step`](Self::step) does, and calls `meanwhile` while the device computes.
    ///
    /// That is not called if there is nothing to run, or if the call fails before.
    pub fn step_during(&mut self, meanwhile: &mut dyn FnMut()) -> bool {
        let start = (self.clock)();
        let mut span = self.trace.span("step");
        self.admit();
        let drafts: Vec<Vec<u32>> = self.running.iter().map(Sequence::draft).collect();
        let wants: Vec<_> =
            self.running.iter().zip(&drafts).map(|(sequence, drafts)| sequence.want(drafts.len())).collect();
        let Some(plan) = plan(&self.runner.limits().steps, self.memory.rows(), &wants) else {
            span.discard();
            return false;
        };
        if self.trace.is_on() {
            self.describe(&plan, &mut span);
        }
        self.work.steps += 1;
        let shares = self.run(&plan, &drafts, meanwhile);
        let time = (self.clock)().saturating_sub(start);
        self.work.time += time;
        self.work.rows += plan.rows.iter().sum::<usize>() as u64;
        self.measure(time);
        self.apply(shares);
        true
    }

    /// Names the phase of a step after its rows.
    fn describe(&self, plan: &Plan, span: &mut Span) {
        let planned = || self.running.iter().zip(&plan.rows).filter(|&(_, &rows)| rows > 0);
        let sequences = planned().count();
        span.rename(match planned().filter(|(sequence, _)| sequence.is_prompt()).count() {
            0 => "decode step",
            prompts if prompts == sequences => "prompt step",
            _ => "mixed step",
        });
        let rows = plan.rows.iter().sum::<usize>() as u32;
        span.set(Detail::Rows { rows, sequences: sequences as u32 });
    }

    /// Takes the oldest event that was not taken.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes the oldest event of one request that was not taken.
    pub fn next_event_of(&mut self, id: RequestId) -> Option<Event> {
        let index = self.events.iter().position(|event| event.id == id)?;
        self.events.remove(index)
    }

    /// Returns true if no request waits or runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// Returns true if another request may wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.waiting.len() < self.settings.waiting
    }

    /// Returns the numbers of requests and pages.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let pools = self.memory.usage().map(|[pages, free, cached]| PoolUsage { pages, free, cached });
        Usage {
            waiting: self.waiting.len(),
            running: self.running.len(),
            is_stopped: self.stopped.is_some(),
            pools: pools.collect(),
            work: self.work,
        }
    }

    /// Makes the cache forget the pages of earlier requests.
    pub fn clear_prefix_cache(&mut self) {
        self.memory.forget();
    }

    /// Returns the limits of the model.
    #[must_use]
    pub fn limits(&self) -> &ModelLimits {
        self.runner.limits()
    }

    /// Returns what the model runs on.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        self.runner.device()
    }

    /// Returns the model.
    pub fn runner(&mut self) -> &mut R {
        &mut self.runner
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

    /// Runs a step and picks tokens. Each request of a step that fails gets the error.
    fn run(&mut self, plan: &Plan, drafts: &[Vec<u32>], meanwhile: &mut dyn FnMut()) -> Vec<Share> {
        let Self { runner, memory, running, trace, .. } = self;
        let trace = trace.clone();
        let planned: Vec<(usize, usize)> =
            plan.rows.iter().copied().enumerate().filter(|&(_, rows)| rows > 0).collect();
        for &(index, rows) in &planned {
            let sequence = &mut running[index];
            if plan.turns[index] {
                sequence.served = self.work.steps;
            }
            let end = sequence.end(rows);
            memory.grow(&mut sequence.lease, end);
            sequence.chooser.prepare();
        }
        let sequences: Vec<SequenceRows<'_>> =
            planned.iter().map(|&(index, rows)| running[index].rows(rows, &drafts[index])).collect();
        let selected: Vec<usize> = sequences.iter().map(|rows| rows.selected.len()).collect();
        let result = runner.step_during(&Batch { size: plan.size, sequences }, meanwhile);
        let expected = selected.iter().sum();
        let result = result.and_then(|rows| match rows.len() {
            found if found == expected => Ok(rows),
            found => Err(EngineError::WrongRows { found, expected }.into()),
        });
        let best = match result {
            Ok(best) => best,
            Err(error) => return self.fail(&planned, error),
        };
        let _span = trace.span("choose tokens");
        let mut first = 0;
        let mut shares = Vec::new();
        for (&(index, rows), count) in planned.iter().zip(selected) {
            let picked =
                pick(runner, &mut running[index], &drafts[index], first, &best[first..first + count]);
            shares.push(Share { index, rows, picked });
            first += count;
        }
        let failed = shares.iter().filter_map(|share| share.picked.as_ref().err()).find_map(failed_read);
        self.count_failure(failed);
        shares
    }

    /// Gives every request of a step its error.
    fn fail(&mut self, planned: &[(usize, usize)], error: Error) -> Vec<Share> {
        let (requests, source): (usize, SharedCause) = (planned.len(), Arc::new(error));
        self.count_failure(Some(source.clone()));
        let shares = planned.iter().map(|&(index, rows)| {
            let error = EngineError::StepFailed { requests, source: source.clone() };
            Share { index, rows, picked: Err(error.into()) }
        });
        shares.collect()
    }

    fn count_failure(&mut self, cause: Option<SharedCause>) {
        self.failures = if cause.is_some() { self.failures + 1 } else { 0 };
        if self.failures >= self.settings.failures.max(1) {
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

    fn finish(&mut self, sequence: Sequence, reason: StopReason) {
        let timings = sequence.timings;
        self.end(sequence, EventKind::Finished { reason, timings });
    }

    /// Gives back the pages of a request and reports its end.
    fn end(&mut self, sequence: Sequence, kind: EventKind) {
        self.work.cached_tokens += sequence.timings.cached_tokens as u64;
        self.memory.free(sequence.lease);
        self.events.push_back(Event { id: sequence.id, kind });
    }

    fn stopped_by(&self, cause: &SharedCause) -> Error {
        EngineError::Stopped { failures: self.failures, source: cause.clone() }.into()
    }

    /// Checks counts of holders and promises.
    #[cfg(test)]
    pub(super) fn check(&self) {
        self.memory.check_holders(self.running.iter().map(|sequence| &sequence.lease));
    }

    /// Returns the requests that run, with the number of steps since each had its turn.
    #[cfg(test)]
    pub(super) fn gaps(&self) -> Vec<(RequestId, u64)> {
        self.running.iter().map(|sequence| (sequence.id, self.work.steps - sequence.served)).collect()
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
        _ => None,
    }
}

impl<R> fmt::Debug for Engine<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("waiting", &self.waiting)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}
