//! The requests that took longest, and how many there were.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

/// The most requests that are kept.
const KEPT: usize = 20;

/// The time after which a request is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);

/// A request that has ended.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ended {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) endpoint: String,
    /// When it came, in seconds since 1970.
    pub(super) at: f64,
    pub(super) seconds: f64,
    pub(super) queued_seconds: f64,
    pub(super) first_token_seconds: Option<f64>,
    pub(super) prompt_tokens: usize,
    pub(super) generated_tokens: usize,
    pub(super) finish_reason: Option<&'static str>,
}

/// Requests that have ended.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The requests of each model.
    counts: HashMap<String, u64>,
    /// The slowest first.
    slowest: Vec<Ended>,
}

impl Journal {
    pub(super) fn add(&self, request: Ended) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *inner.counts.entry(request.model.clone()).or_default() += 1;
        inner.forget(request.at + request.seconds);
        inner.slowest.push(request);
        inner.slowest.sort_by_key(|request| Reverse(Duration::from_secs_f64(request.seconds)));
        inner.slowest.truncate(KEPT);
    }

    /// Returns the slowest requests of the last minutes, the slowest first. `now` is in seconds since 1970.
    pub(crate) fn slowest(&self, now: f64) -> Vec<Ended> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.forget(now);
        inner.slowest.clone()
    }

    /// Returns how many requests of a model have ended.
    pub(crate) fn requests(&self, model: &str) -> u64 {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.counts.get(model).copied().unwrap_or_default()
    }
}

impl Inner {
    fn forget(&mut self, now: f64) {
        self.slowest.retain(|request| now - request.at - request.seconds < FORGOTTEN_AFTER.as_secs_f64());
    }
}

/// Returns the time since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(at: f64, seconds: f64) -> Ended {
        Ended {
            id: String::new(),
            model: "m".into(),
            endpoint: String::new(),
            at,
            seconds,
            queued_seconds: 0.0,
            first_token_seconds: None,
            prompt_tokens: 0,
            generated_tokens: 0,
            finish_reason: None,
        }
    }

    #[test]
    fn the_slowest_of_the_last_minutes_are_kept() {
        let journal = Journal::default();
        let seconds = |now: f64| journal.slowest(now).iter().map(|one| one.seconds).collect::<Vec<_>>();
        for index in 0..30 {
            journal.add(ended(100.0, f64::from(index * 7 % 30)));
        }
        assert_eq!(seconds(200.0), (10..30).rev().map(f64::from).collect::<Vec<_>>());
        journal.add(ended(999.0, 1.0));
        assert_eq!(seconds(1000.0).len(), 20);
        assert_eq!(seconds(1020.0), [29.0, 28.0, 27.0, 26.0, 25.0, 24.0, 23.0, 22.0, 21.0]);
        assert_eq!(seconds(1900.0), [] as [f64; 0]);
        assert_eq!((journal.requests("m"), journal.requests("n")), (31, 0));
    }
}
