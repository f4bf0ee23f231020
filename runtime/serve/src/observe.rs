//! What the server tells of itself: counters, latencies, and the requests that took longest.

pub(crate) mod arrival;
mod history;
mod journal;
mod log;
mod metrics;
pub(crate) mod record;
#[cfg(feature = "otel")]
mod span;
pub(crate) mod status;
