//! The line of each request in the log. The text of prompts and answers is not in it.

use std::time::Duration;

use axum::http::HeaderValue;
use tracing::{Level, enabled, event};

use super::arrival::Arrival;

/// What programs filter lines by.
const TARGET: &str = "mlxcel_serve::request";

/// What programs ask again and again. It is in the log if it fails.
const PROBES: [&str; 4] = ["/health/live", "/health/ready", "/metrics", "/status.json"];

/// What is known at the end of a request.
#[derive(Debug)]
pub(super) struct End<'a> {
    /// The status; `None` if the client was gone before the end of the answer.
    pub(super) status: Option<u16>,
    /// The code or the type of the error that was sent.
    pub(super) error: Option<&'static str>,
    pub(super) took: Duration,
    pub(super) model: Option<&'a str>,
    /// The id of the answer.
    pub(super) answer: &'a str,
    /// The time from its arrival after which it was given to the engine.
    #[cfg(feature = "otel")]
    pub(super) begun: Option<Duration>,
    pub(super) queued: Duration,
    pub(super) first_token: Option<Duration>,
    pub(super) prompt_tokens: usize,
    pub(super) generated_tokens: usize,
    pub(super) finish_reason: Option<&'static str>,
}

/// Returns whether a request is one that programs send again and again, and was answered.
pub(super) fn is_probe(arrival: &Arrival, end: &End<'_>) -> bool {
    PROBES.contains(&arrival.endpoint.as_str()) && end.status.is_some_and(|status| status < 400)
}

/// Writes a line.
pub(super) fn log(arrival: &Arrival, end: &End<'_>) {
    let Arrival { method, path, id, .. } = arrival;
    let End {
        status,
        error,
        took,
        model,
        answer,
        queued,
        first_token,
        prompt_tokens,
        generated_tokens,
        finish_reason,
        ..
    } = end;
    let is_answer = model.is_some();
    let seconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e6;
    macro_rules! line {
        ($level:expr) => {
            event!(
                target: TARGET,
                $level,
                request_id = text(id),
                method = %method,
                path = %path,
                status,
                error,
                client_gone = status.is_none().then_some(true),
                seconds = seconds(*took),
                model,
                answer = is_answer.then_some(*answer),
                queued_seconds = is_answer.then(|| seconds(*queued)),
                first_token_seconds = first_token.map(seconds),
                prompt_tokens = is_answer.then_some(*prompt_tokens),
                generated_tokens = is_answer.then_some(*generated_tokens),
                finish_reason,
            )
        };
    }
    if status.is_some_and(|status| status >= 500) { line!(Level::WARN) } else { line!(Level::INFO) }
}

/// Writes the body of a request.
pub(super) fn log_body(arrival: &Arrival, body: &[u8]) {
    if enabled!(target: TARGET, Level::INFO) {
        let body = String::from_utf8_lossy(body);
        event!(target: TARGET, Level::INFO, request_id = text(&arrival.id), body = &*body);
    }
}

/// Returns an id, which is ASCII.
fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}
