//! The state of the server in one object, for its status page.

use mlxcel_artifacts::Digest;
use mlxcel_runtime::engine::Work;
use serde::Serialize;

use super::{
    history::{INTERVAL, Point},
    journal::{Ended, now},
    record::Observer,
};
use crate::model::ServedModel;

/// The state of the server.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    version: &'static str,
    uptime_seconds: f64,
    draining: bool,
    models: Vec<ModelStatus>,
    slowest: Vec<Ended>,
}

#[derive(Debug, Serialize)]
struct ModelStatus {
    name: String,
    digest: Digest,
    target: String,
    device: String,
    context: usize,
    queue: Queue,
    running: usize,
    /// Over the last minute.
    rows_per_step: Option<f64>,
    cache: Vec<Pool>,
    totals: Totals,
    history: Points,
}

#[derive(Debug, Serialize)]
struct Queue {
    waiting: usize,
    limit: usize,
}

#[derive(Debug, Serialize)]
struct Pool {
    window: Option<usize>,
    pages: usize,
    free: usize,
    cached: usize,
    in_use: usize,
    page_bytes: usize,
}

#[derive(Debug, Serialize)]
struct Totals {
    requests: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    generated_tokens: u64,
    steps: u64,
    rows: u64,
}

#[derive(Debug, Serialize)]
struct Points {
    interval_seconds: u64,
    points: Vec<Point>,
}

impl Status {
    pub(crate) fn new<'a>(observer: &Observer, models: impl Iterator<Item = &'a ServedModel>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: observer.uptime().as_secs_f64(),
            draining: observer.is_draining(),
            models: models.map(|model| ModelStatus::new(observer, model)).collect(),
            slowest: observer.journal.slowest(now().as_secs_f64()),
        }
    }
}

impl ModelStatus {
    fn new(observer: &Observer, model: &ServedModel) -> Self {
        let usage = model.usage();
        let pools = usage.pools.iter().zip(model.pools()).map(|(pool, limits)| Pool {
            window: limits.window,
            pages: pool.pages,
            free: pool.free,
            cached: pool.cached,
            in_use: pool.pages - pool.free - pool.cached,
            page_bytes: limits.page_bytes,
        });
        let Work { steps, rows, prompt_tokens, cached_tokens, generated_tokens, .. } = usage.work;
        let requests = observer.journal.requests(model.name());
        let facts = model.facts();
        Self {
            name: model.name().to_owned(),
            digest: facts.digest,
            target: facts.target.clone(),
            device: facts.device.clone(),
            context: facts.context,
            queue: Queue { waiting: usage.waiting, limit: model.queue_limit() },
            running: usage.running,
            rows_per_step: observer.history.rows_per_step(model.name(), &usage.work),
            cache: pools.collect(),
            totals: Totals { requests, prompt_tokens, cached_tokens, generated_tokens, steps, rows },
            history: Points {
                interval_seconds: INTERVAL.as_secs(),
                points: observer.history.points(model.name()),
            },
        }
    }
}
