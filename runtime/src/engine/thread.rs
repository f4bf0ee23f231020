//! The engine on a thread of its own.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, SendError, Sender},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use mlxcel_artifacts::Cancel;

use super::{
    core::{Engine, EngineSettings},
    memory::Memory,
    request::{Event, EventKind, Request, RequestId},
    score::check_range,
    score_queue::{ScoreJob, ScoreQueue, ScoreSink},
    usage::Usage,
};
use crate::{
    device::DeviceInfo,
    error::{EngineError, Error},
    model::{ModelLimits, ModelRunner},
    places::{Life, Places},
};

/// An [`Engine`] on a thread. Dropping it cancels all requests and waits for the thread.
#[derive(Debug)]
pub struct EngineThread {
    client: EngineClient,
    pub(super) stop: Cancel,
    thread: Option<JoinHandle<()>>,
}

/// Submits requests to an [`EngineThread`]. Clones share one queue.
#[derive(Debug, Clone)]
pub struct EngineClient {
    queue: Sender<Message>,
    places: Arc<Places>,
    /// The most requests that wait.
    limit: usize,
    model: Arc<Model>,
    usage: Arc<Mutex<Usage>>,
}

/// What clients know of the model.
#[derive(Debug)]
struct Model {
    limits: ModelLimits,
    memory: Memory,
    device: DeviceInfo,
}

/// Takes the events of one request, on the engine's thread, which waits for it. Returns false to cancel the request.
///
/// The last event is [`EventKind::Finished`] or [`EventKind::Failed`], also if the thread ends before the request begins.
pub type EventSink = Box<dyn FnMut(EventKind) -> bool + Send>;

/// A request that was submitted. Dropping it cancels the request.
#[derive(Debug)]
pub struct RequestGuard {
    cancel: Cancel,
}

/// The events of one request. Dropping it cancels the request.
#[derive(Debug)]
pub struct RequestHandle {
    events: Receiver<EventKind>,
    guard: RequestGuard,
    has_ended: bool,
}

/// What the thread receives.
enum Message {
    Submit(Box<Submission>),
    Score(Box<ScoreJob>),
    /// Wakes the thread to look whether it has to stop.
    Wake,
}

struct Submission {
    request: Request,
    at: Instant,
    events: Delivery,
    cancel: Cancel,
}

/// The way of events to their sink, which gets a last one in any case.
struct Delivery {
    sink: EventSink,
    has_ended: bool,
}

impl Delivery {
    /// Delivers an event. Returns false if no more are wanted.
    fn deliver(&mut self, event: EventKind) -> bool {
        self.has_ended |= !matches!(event, EventKind::Token { .. });
        (self.sink)(event)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.has_ended {
            (self.sink)(EventKind::Failed { error: EngineError::Closed.into() });
        }
    }
}

impl EngineThread {
    /// Starts a thread that makes the model and runs an engine over it. Returns when the model is loaded.
    ///
    /// The model is made there because a device's handles may belong to the thread that made them. At most
    /// [`EngineSettings::waiting`] requests wait, and one if that is 0.
    ///
    /// # Errors
    /// `load` fails, or [`Engine::new`] refuses the model.
    pub fn start<R, F>(load: F, settings: EngineSettings) -> Result<Self, Error>
    where
        R: ModelRunner,
        F: FnOnce() -> Result<R, Error> + Send + 'static,
    {
        // Bounded by the places.
        let (queue, messages) = mpsc::channel();
        let (loaded, is_loaded) = mpsc::channel();
        let places = Arc::new(Places::default());
        let stop = Cancel::new();
        let usage: Arc<Mutex<Usage>> = Arc::default();
        let life = Life(places.clone());
        let (stopping, shown) = (stop.clone(), usage.clone());
        let settings = EngineSettings { waiting: settings.waiting.max(1), ..settings };
        let thread = thread::Builder::new().name("engine".to_owned()).spawn(move || {
            match load().and_then(|runner| Engine::new(runner, settings)) {
                Ok(mut engine) => {
                    let model = (engine.runner().limits().clone(), engine.runner().device().clone());
                    *shown.lock().unwrap_or_else(PoisonError::into_inner) = engine.usage();
                    if loaded.send(Ok(model)).is_ok() {
                        let (active, scores) = (Active::default(), ScoreQueue::default());
                        let (waiting, stop, usage) = (0, stopping, shown);
                        Worker { life, engine, active, messages, waiting, scores, stop, usage }.run();
                    }
                }
                Err(error) => {
                    let _ = loaded.send(Err(error));
                }
            }
        });
        let thread = Some(thread.map_err(|_| EngineError::Closed)?);
        let (limits, device) = is_loaded.recv().map_err(|_| EngineError::Closed)??;
        let memory = Memory::new(&limits);
        let model = Arc::new(Model { limits, memory, device });
        let client = EngineClient { queue, places, limit: settings.waiting, model, usage };
        Ok(Self { client, stop, thread })
    }

    /// Returns a client, for another thread.
    #[must_use]
    pub fn client(&self) -> EngineClient {
        self.client.clone()
    }

    /// Ends all requests, and takes no more.
    ///
    /// Does not wait: each request has its last event when the current step has ended.
    pub fn stop(&self) {
        self.stop.cancel();
        let _ = self.client.queue.send(Message::Wake);
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl EngineClient {
    /// Submits a request. Waits while the queue is full.
    ///
    /// # Errors
    /// The request is refused, or the thread has ended.
    pub fn submit(&self, request: Request) -> Result<RequestHandle, Error> {
        self.check(&request)?;
        let (events, receiver) = channel();
        self.places.take(self.limit)?;
        let guard = self.send(request, events)?;
        Ok(RequestHandle { events: receiver, guard, has_ended: false })
    }

    /// Submits a request if the queue has room.
    ///
    /// # Errors
    /// As [`EngineClient::submit`], or the queue is full.
    pub fn try_submit(&self, request: Request) -> Result<RequestHandle, Error> {
        let (events, receiver) = channel();
        let guard = self.try_submit_to(request, events)?;
        Ok(RequestHandle { events: receiver, guard, has_ended: false })
    }

    /// Submits a request whose events `events` takes, if the queue has room.
    ///
    /// # Errors
    /// As [`EngineClient::try_submit`].
    pub fn try_submit_to(&self, request: Request, events: EventSink) -> Result<RequestGuard, Error> {
        self.check(&request)?;
        self.places.try_take(self.limit)?;
        self.send(request, events)
    }

    /// Sends a request that has a place to the thread.
    fn send(&self, request: Request, sink: EventSink) -> Result<RequestGuard, Error> {
        let (guard, cancel) = RequestGuard::new();
        let events = Delivery { sink, has_ended: false };
        let submission = Submission { request, at: Instant::now(), events, cancel };
        self.queue.send(Message::Submit(Box::new(submission))).map_err(|SendError(message)| {
            if let Message::Submit(mut refused) = message {
                // The caller gets the error instead.
                refused.events.has_ended = true;
            }
            EngineError::Closed
        })?;
        Ok(guard)
    }

    /// Submits a text whose tokens' log-probabilities `sink` takes, if the queue has room. They are what
    /// [`Engine::token_logprobs`] returns. Other requests go on meanwhile.
    ///
    /// # Errors
    /// The text is refused, the queue is full, or the thread has ended.
    pub fn try_score_to(
        &self,
        text: Vec<u32>,
        from: usize,
        top: usize,
        sink: ScoreSink,
    ) -> Result<RequestGuard, Error> {
        self.model.limits.check_prompt(&text)?;
        check_range(&text, from)?;
        self.model.memory.check(text.len())?;
        let (guard, cancel) = RequestGuard::new();
        self.places.try_take(self.limit)?;
        let job = ScoreJob { text, from, top, sink, cancel };
        self.queue.send(Message::Score(Box::new(job))).map_err(|_| EngineError::Closed)?;
        Ok(guard)
    }

    /// Checks a request without submitting it.
    ///
    /// # Errors
    /// The request would be refused.
    pub fn check(&self, request: &Request) -> Result<(), Error> {
        request.check(&self.model.limits, &self.model.memory).map(drop)
    }

    /// Returns the most positions of a request: the model's context, or fewer if the cache has no room for it.
    #[must_use]
    pub fn context(&self) -> usize {
        self.model.limits.context.min(self.model.memory.positions())
    }

    /// Returns the most tokens of an answer that has no limit of its own, after a prompt of so many tokens.
    ///
    /// That is what the cache has room for, at least 1. There is no limit if it has room for the whole
    /// context, whose end then ends the answer.
    #[must_use]
    pub fn room(&self, prompt: usize) -> usize {
        self.model.memory.room(self.model.limits.context, prompt)
    }

    /// Returns the limits of the model.
    #[must_use]
    pub fn limits(&self) -> &ModelLimits {
        &self.model.limits
    }

    /// Returns the device that the model runs on.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        &self.model.device
    }

    /// Returns the most requests that can wait.
    #[must_use]
    pub fn queue_limit(&self) -> usize {
        self.limit
    }

    /// Returns whether requests can succeed: the thread runs, and its device has not failed for good.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.places.has_ended() && !self.usage.lock().unwrap_or_else(PoisonError::into_inner).is_stopped
    }

    /// Returns what the engine had before it delivered its last events, and how many requests wait now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        // Read first, because a request that begins is shown as running before its place is free.
        let waiting = self.places.taken();
        let usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Usage { waiting, ..usage }
    }
}

/// Makes a sink whose events come out of a receiver.
fn channel() -> (EventSink, Receiver<EventKind>) {
    let (sender, receiver) = mpsc::channel();
    (Box::new(move |event| sender.send(event).is_ok()), receiver)
}

impl RequestHandle {
    /// Ends the request. Its last event says so.
    pub fn cancel(&self) {
        self.guard.cancel();
    }
}

impl Iterator for RequestHandle {
    type Item = EventKind;

    /// Waits for the next event. `None` after the last one.
    fn next(&mut self) -> Option<EventKind> {
        if self.has_ended {
            return None;
        }
        let event =
            self.events.recv().unwrap_or_else(|_| EventKind::Failed { error: EngineError::Closed.into() });
        self.has_ended = !matches!(event, EventKind::Token { .. });
        Some(event)
    }
}

impl RequestGuard {
    /// Makes a guard, and what it cancels.
    pub(crate) fn new() -> (Self, Cancel) {
        let cancel = Cancel::new();
        (Self { cancel: cancel.clone() }, cancel)
    }

    /// Ends the request. Its last event says so.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Requests whose last event was not delivered.
#[derive(Default)]
struct Active {
    requests: HashMap<RequestId, (Delivery, Cancel)>,
    /// Events on their way to them.
    events: VecDeque<Event>,
}

impl Active {
    /// Returns the requests that are to be cancelled, in order.
    fn wanted(&self, is_wanted: impl Fn(&Cancel) -> bool) -> Vec<RequestId> {
        let wanted = self.requests.iter().filter(|(_, (_, cancel))| is_wanted(cancel));
        let mut wanted: Vec<RequestId> = wanted.map(|(id, _)| *id).collect();
        wanted.sort_unstable();
        wanted
    }

    /// Delivers the events.
    fn deliver(&mut self) {
        while let Some(event) = self.events.pop_front() {
            let is_last = !matches!(event.kind, EventKind::Token { .. });
            if let Some((events, cancel)) = self.requests.get_mut(&event.id)
                && !events.deliver(event.kind)
            {
                cancel.cancel();
            }
            if is_last {
                self.requests.remove(&event.id);
            }
        }
    }
}

/// The thread's own part.
struct Worker<R> {
    /// Dropped first, so that who sees a request end with the thread sees that it has ended.
    life: Life,
    engine: Engine<R>,
    active: Active,
    messages: Receiver<Message>,
    /// The places of requests that are in the engine.
    waiting: usize,
    scores: ScoreQueue,
    stop: Cancel,
    usage: Arc<Mutex<Usage>>,
}

impl<R: ModelRunner> Worker<R> {
    fn run(&mut self) {
        while !self.stop.is_cancelled() {
            if self.engine.is_idle() && self.scores.is_empty() {
                match self.messages.recv() {
                    Ok(message) => self.accept(message),
                    Err(_) => return,
                }
            }
            // The engine has room for all that have a place. A text that waits for pages is not overtaken for ever.
            while !self.scores.is_blocked()
                && let Ok(message) = self.messages.try_recv()
            {
                self.accept(message);
            }
            self.cancel(|cancel| cancel.is_cancelled());
            // Whoever gets the tokens of a step wakes while a GPU computes the next one.
            // A text that is scored has the device between two steps.
            self.engine.run_step(self.scores.is_empty(), &mut || self.active.deliver());
            let begun = self.scores.step(&mut self.engine);
            self.life.0.free(begun);
            self.collect();
            // Where all processors compute, who gets the tokens would wait for one until the end of the next step.
            if self.engine.is_idle() || self.engine.runner.is_host() {
                self.active.deliver();
            }
        }
        self.cancel(|_| true);
        self.scores.close(&mut self.engine);
        self.collect();
        self.active.deliver();
    }

    fn accept(&mut self, message: Message) {
        let submission = match message {
            Message::Submit(submission) => submission,
            Message::Score(job) => return self.scores.push(*job),
            Message::Wake => return,
        };
        self.waiting += 1;
        let Submission { request, at, mut events, cancel } = *submission;
        match self.engine.submit_after(request, at.elapsed()) {
            Ok(id) => {
                self.active.requests.insert(id, (events, cancel));
            }
            Err(error) => {
                events.deliver(EventKind::Failed { error });
            }
        }
    }

    fn cancel(&mut self, is_wanted: impl Fn(&Cancel) -> bool) {
        for id in self.active.wanted(is_wanted) {
            self.engine.cancel(id);
        }
    }

    /// Delivers what the last step has not, and takes the events that came since.
    fn collect(&mut self) {
        self.active.deliver();
        // Before the events are delivered, so that who sees the end of a request sees that its pages are free.
        let usage = self.engine.usage();
        let left = self.waiting - usage.waiting;
        self.waiting = usage.waiting;
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
        // Then, so that a request that begins is always seen: waiting, running, or for a moment as both.
        self.life.0.free(left);
        self.active.events.extend(std::iter::from_fn(|| self.engine.next_event()));
    }
}
