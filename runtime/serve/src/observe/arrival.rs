//! A request as it came, before anything of it is known to be good.

use std::{collections::hash_map::RandomState, hash::BuildHasher as _};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderName, HeaderValue, Method},
};

/// The header that tells one request from another, in requests and in answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id of a request that clients choose.
const MAX_ID: usize = 128;

/// The longest path in logs, in bytes.
const MAX_PATH: usize = 200;

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The path by its route. Those to no path of the server have none, so that nobody can make up any number of them.
    pub(super) endpoint: String,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) id: HeaderValue,
    /// The span that it belongs to.
    #[cfg(feature = "otel")]
    pub(super) parent: opentelemetry::Context,
}

impl Arrival {
    /// Reads the head of a request.
    pub(crate) fn new(request: &Request) -> Self {
        let path = request.uri().path();
        Self {
            endpoint: request.extensions().get().map_or("", MatchedPath::as_str).to_owned(),
            method: request.method().clone(),
            // It is ASCII.
            path: path.get(..MAX_PATH).unwrap_or(path).to_owned(),
            id: request.headers().get(REQUEST_ID).filter(|id| is_id(id)).cloned().unwrap_or_else(random_id),
            #[cfg(feature = "otel")]
            parent: parent(request),
        }
    }
}

/// Returns whether an id of a client can stand in logs and headers as it is.
fn is_id(id: &HeaderValue) -> bool {
    let is_plain = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte);
    (1..=MAX_ID).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

fn random_id() -> HeaderValue {
    // The standard library's keys are random.
    let random = RandomState::new();
    let id = format!("req-{:016x}{:016x}", random.hash_one(0), random.hash_one(1));
    HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("req"))
}

/// Returns the span that a request belongs to, by the W3C's `traceparent`.
#[cfg(feature = "otel")]
fn parent(request: &Request) -> opentelemetry::Context {
    use opentelemetry::{Context, propagation::TextMapPropagator as _};
    use opentelemetry_http::HeaderExtractor;
    use opentelemetry_sdk::propagation::TraceContextPropagator;

    TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(request.headers()))
}
