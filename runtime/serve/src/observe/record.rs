//! A request on its way, as it is counted at its end.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::{HeaderValue, StatusCode};
use mlxcel_runtime::Timings;

use super::{
    arrival::Arrival,
    history::{History, INTERVAL},
    journal::{Ended, Journal, now},
    log::{End, is_probe, log, log_body},
    metrics::{Metrics, TokenTimes},
};
use crate::{api::error::ErrorName, model::ServedModel};

/// The status of a request whose client went before the end, as nginx has it.
const CLIENT_GONE: u16 = 499;

/// What the server tells of itself.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) metrics: Metrics,
    pub(super) journal: Journal,
    pub(super) history: History,
    start: Instant,
    is_draining: AtomicBool,
}

/// A request. It is counted when its last clone is dropped: whoever drops it before the end of the answer was left by the
/// client.
#[derive(Debug, Clone)]
pub(crate) struct Record(Arc<Request>);

#[derive(Debug)]
struct Request {
    observer: Arc<Observer>,
    arrival: Arrival,
    /// Since 1970.
    at: Duration,
    start: Instant,
    seen: Mutex<Seen>,
}

/// What was seen of a request so far.
#[derive(Debug, Default)]
struct Seen {
    model: Option<String>,
    id: String,
    status: Option<StatusCode>,
    error: Option<ErrorName>,
    /// True if the answer goes on after its head.
    is_streamed: bool,
    #[cfg(feature = "otel")]
    begun: Option<Duration>,
    queued: Duration,
    first_token: Option<Duration>,
    prompt_tokens: usize,
    generated_tokens: usize,
    finish_reason: Option<&'static str>,
}

/// One answer of a request. Dropping it before its end counts it as cancelled.
#[derive(Debug)]
pub(crate) struct AnswerRecord {
    request: Record,
    times: TokenTimes,
    /// The tokens of the prompt, if this is its first answer.
    prompt: usize,
    generated: usize,
    last_token: Option<Instant>,
    has_ended: bool,
}

impl Observer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(),
            journal: Journal::default(),
            history: History::default(),
            start: Instant::now(),
            is_draining: AtomicBool::new(false),
        })
    }

    /// Notes that the server takes no more requests.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    pub(super) fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// Samples what `models` returns, for ever.
    pub(crate) async fn sample(&self, models: impl Fn() -> Vec<Arc<ServedModel>>) {
        let mut interval = tokio::time::interval(INTERVAL);
        loop {
            interval.tick().await;
            let models = models();
            let usages: Vec<_> = models.iter().map(|model| (model.name(), model.usage())).collect();
            self.history.sample(now().as_secs_f64(), &usages);
        }
    }

    /// Begins to record a request.
    pub(crate) fn record(self: &Arc<Self>, arrival: Arrival) -> Record {
        Record(Arc::new(Request {
            observer: self.clone(),
            arrival,
            at: now(),
            start: Instant::now(),
            seen: Mutex::default(),
        }))
    }
}

impl Record {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the request came.
    pub(crate) fn start(&self) -> Instant {
        self.0.start
    }

    /// Returns the request's id, for the answer's head.
    pub(crate) fn id(&self) -> HeaderValue {
        self.0.arrival.id.clone()
    }

    /// Writes the request's body to the log.
    pub(crate) fn log_body(&self, body: &[u8]) {
        log_body(&self.0.arrival, body);
    }

    /// Notes which model answers, and the answer's id.
    pub(crate) fn begin(&self, model: &str, id: &str) {
        let mut seen = self.seen();
        #[cfg(feature = "otel")]
        seen.begun.get_or_insert(self.0.start.elapsed());
        (seen.model, seen.id) = (Some(model.to_owned()), id.to_owned());
    }

    /// Notes that the answer goes on after its head, so that its end is told by [`Record::end`].
    pub(crate) fn stream(&self) {
        self.seen().is_streamed = true;
    }

    /// Notes the head of the answer, which is the end of most.
    pub(crate) fn head(&self, status: StatusCode, error: Option<ErrorName>) {
        let mut seen = self.seen();
        if !seen.is_streamed {
            (seen.status, seen.error) = (Some(status), error);
        }
    }

    /// Notes the end of a streamed answer.
    pub(crate) fn end(&self, status: StatusCode, error: Option<ErrorName>) {
        let mut seen = self.seen();
        (seen.status, seen.error) = (Some(status), error);
    }

    /// Notes texts of so many tokens that were embedded, and how long they waited.
    pub(crate) fn embed(&self, model: &str, tokens: usize, queued: Duration) {
        self.0.observer.metrics.token_times(model).queued.observe(queued.as_secs_f64());
        let mut seen = self.seen();
        (seen.prompt_tokens, seen.queued) = (tokens, queued);
    }

    /// Begins to record an answer to a prompt of so many tokens; none if another answer has the same prompt.
    pub(crate) fn answer(&self, model: &str, prompt: usize) -> AnswerRecord {
        let times = self.0.observer.metrics.token_times(model);
        let request = self.clone();
        AnswerRecord { request, times, prompt, generated: 0, last_token: None, has_ended: false }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let seen = self.seen.get_mut().unwrap_or_else(PoisonError::into_inner);
        let seen = std::mem::take(seen);
        let Observer { metrics, journal, .. } = &*self.observer;
        let took = self.start.elapsed();
        let status = seen.status.map(|status| status.as_u16());
        let end = End {
            status,
            error: seen.error.map(|ErrorName(name)| name),
            took,
            model: seen.model.as_deref(),
            answer: &seen.id,
            #[cfg(feature = "otel")]
            begun: seen.begun,
            queued: seen.queued,
            first_token: seen.first_token,
            prompt_tokens: seen.prompt_tokens,
            generated_tokens: seen.generated_tokens,
            finish_reason: seen.finish_reason,
        };
        if !is_probe(&self.arrival, &end) {
            log(&self.arrival, &end);
            #[cfg(feature = "otel")]
            super::span::export(&self.arrival, self.at, &end);
        }
        let endpoint = &mut self.arrival.endpoint;
        metrics.count_request(
            seen.model.as_deref().unwrap_or_default(),
            endpoint,
            status.unwrap_or(CLIENT_GONE),
        );
        let Some(model) = seen.model else { return };
        metrics.observe_duration(&model, took.as_secs_f64());
        journal.add(Ended {
            id: seen.id,
            model,
            endpoint: std::mem::take(endpoint),
            at: self.at.as_secs_f64(),
            seconds: took.as_secs_f64(),
            queued_seconds: seen.queued.as_secs_f64(),
            first_token_seconds: seen.first_token.map(|time| time.as_secs_f64()),
            prompt_tokens: seen.prompt_tokens,
            generated_tokens: seen.generated_tokens,
            finish_reason: seen.finish_reason,
        });
    }
}

impl AnswerRecord {
    /// Notes that there is no answer, because the engine did not take the request.
    pub(crate) fn refuse(&mut self) {
        self.has_ended = true;
    }

    /// Notes a token that the engine had at `at`.
    pub(crate) fn token(&mut self, at: Instant) {
        self.generated += 1;
        match self.last_token.replace(at) {
            Some(last) => self.times.between.observe(at.saturating_duration_since(last).as_secs_f64()),
            None => {
                let time = at.saturating_duration_since(self.request.0.start);
                self.times.first.observe(time.as_secs_f64());
                let mut seen = self.request.seen();
                seen.first_token = Some(seen.first_token.map_or(time, |known| known.min(time)));
            }
        }
    }

    /// Notes the end of the answer, by OpenAI's name of its reason.
    pub(crate) fn end(&mut self, reason: &'static str, timings: &Timings) {
        self.times.queued.observe(timings.queued.as_secs_f64());
        let mut seen = self.request.seen();
        seen.queued = seen.queued.max(timings.queued);
        drop(seen);
        self.close(reason);
    }

    /// Notes that the answer failed.
    pub(crate) fn fail(&mut self) {
        self.close("error");
    }

    fn close(&mut self, reason: &'static str) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut seen = self.request.seen();
        seen.prompt_tokens += self.prompt;
        seen.generated_tokens += self.generated;
        seen.finish_reason.get_or_insert(reason);
        let Request { observer, arrival, .. } = &*self.request.0;
        observer.metrics.count_answer(seen.model.as_deref().unwrap_or_default(), &arrival.endpoint, reason);
    }
}

impl Drop for AnswerRecord {
    fn drop(&mut self) {
        self.close("cancelled");
    }
}
