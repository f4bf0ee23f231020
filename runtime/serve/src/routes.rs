//! Paths and what answers them.

mod body;
mod chat;
mod completions;
mod generate;
mod models;
mod streaming;
mod tokens;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use serde_json::json;

use crate::{api::error::ApiError, state::Shared};

/// Returns all routes.
pub(crate) fn router(state: Shared) -> Router {
    let max_body = state.max_body();
    let keyed = Router::new()
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/completions", post(completions::complete))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{model}", get(models::one))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/apply-template", post(tokens::apply_template))
        .layer(middleware::from_fn_with_state(state.clone(), check_key));
    Router::new()
        .route("/health/live", get(|| async { Json(json!({ "status": "ok" })) }))
        .route("/health/ready", get(ready))
        .merge(keyed)
        .fallback(|method: Method, uri: Uri| async move { ApiError::no_path(method.as_str(), uri.path()) })
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(max_body))
        .with_state(state)
}

/// Says whether all models can answer, for whoever spreads requests over servers.
async fn ready(State(state): State<Shared>) -> Response {
    let stopped: Vec<&str> =
        state.models().iter().filter(|model| !model.is_ready()).map(|model| model.name()).collect();
    if stopped.is_empty() {
        return Json(json!({ "status": "ok" })).into_response();
    }
    let body = json!({ "status": "unavailable", "stopped": stopped });
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

async fn not_allowed(method: Method, uri: Uri) -> Response {
    let mut response = ApiError::no_path(method.as_str(), uri.path()).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

/// Lets requests with a key through.
async fn check_key(State(state): State<Shared>, request: Request, next: Next) -> Response {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = header.and_then(|value| value.strip_prefix("Bearer "));
    if state.allows(key) { next.run(request).await } else { ApiError::unauthorized().into_response() }
}
