//! What the server tells of itself: counters, latencies, and the requests that took longest.

mod history;
mod journal;
mod metrics;
pub(crate) mod record;
pub(crate) mod status;
