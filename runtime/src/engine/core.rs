//! The synchronous engine: its requests, and what they are given.

use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

use super::{
    chooser::Chooser,
    generation::StopReason,
    memory::Memory,
    planned::Step,
    prefix::PageKeys,
    request::{Event, EventKind, Request, RequestId},
    sequence::Sequence,
    usage::{PoolUsage, Usage, Work},
};
use crate::{
    device::DeviceInfo,
    error::{EngineError, Error, SharedCause},
    model::{ModelLimits, ModelRunner},
    trace::Trace,
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
    pub(super) most: usize,
    pub(super) waiting: VecDeque<Sequence>,
    pub(super) running: Vec<Sequence>,
    /// A step that was begun before its turn.
    pub(super) ahead: Option<Step>,
    pub(super) events: VecDeque<Event>,
    next_id: u64,
    pub(super) work: Work,
    /// Steps that failed since the last one that did not, and the last error.
    pub(super) failures: usize,
    pub(super) stopped: Option<SharedCause>,
    /// That of the model.
    pub(super) trace: Trace,
    pub(super) clock: Box<dyn Fn() -> Duration + Send>,
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
            ahead: None,
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

    /// Returns the timeline on which the device is recorded; off if it is not.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.runner.trace()
    }

    /// Ends a step that was begun before its turn, whose events are to be taken, and returns the model.
    pub fn runner(&mut self) -> &mut R {
        self.settle();
        &mut self.runner
    }

    pub(super) fn finish(&mut self, sequence: Sequence, reason: StopReason) {
        let timings = sequence.timings;
        self.end(sequence, EventKind::Finished { reason, timings });
    }

    /// Gives back the pages of a request and reports its end.
    pub(super) fn end(&mut self, sequence: Sequence, kind: EventKind) {
        self.work.cached_tokens += sequence.timings.cached_tokens as u64;
        self.memory.free(sequence.lease);
        self.events.push_back(Event { id: sequence.id, kind });
    }

    pub(super) fn stopped_by(&self, cause: &SharedCause) -> Error {
        EngineError::of_stop(self.failures, cause).into()
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

impl<R> fmt::Debug for Engine<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("waiting", &self.waiting)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}
