//! What the server tells of itself, and what it notes of requests for that.

use axum::{
    Json,
    extract::{Request, State},
    http::header::CONTENT_TYPE,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use prometheus_client::encoding::prometheus_text;
use serde_json::Value;

use crate::{
    observe::{
        arrival::{Arrival, REQUEST_ID},
        status::Status,
    },
    openapi::document,
    state::Shared,
};

/// Records requests, and answers with their ids.
pub(super) async fn record(State(state): State<Shared>, mut request: Request, next: Next) -> Response {
    let record = state.observer().record(Arrival::new(&request));
    request.extensions_mut().insert(record.clone());
    // A request whose body, grammar or place in the queue takes too long ends here. A stream ends itself after its head.
    let mut response = tokio::select! {
        response = next.run(request) => response,
        error = state.cut(record.start()) => error.into_response(),
    };
    record.head(response.status(), response.extensions().get().copied());
    response.headers_mut().insert(REQUEST_ID, record.id());
    response
}

/// `GET /metrics`: all numbers in Prometheus' form.
pub(super) async fn metrics(State(state): State<Shared>) -> Response {
    let text = state.observer().metrics.encode(state.models().all().iter().map(AsRef::as_ref));
    ([(CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], text).into_response()
}

/// `GET /status.json`: the numbers of the last minutes, and the slowest requests.
pub(super) async fn status(State(state): State<Shared>) -> Json<Status> {
    Json(Status::new(state.observer(), state.models().all().iter().map(AsRef::as_ref)))
}

/// `GET /openapi.json`: what the server takes and answers.
pub(super) async fn openapi(State(state): State<Shared>) -> Json<Value> {
    let models = state.models().all();
    let names: Vec<&str> = models.iter().map(|model| model.name()).collect();
    Json(document(state.needs_key(), &names))
}
