//! Paths and what answers them.

mod access;
mod admin;
mod body;
mod chat;
mod completions;
mod embeddings;
mod generate;
mod models;
mod observe;
mod origin;
mod pages;
mod streaming;
mod tokens;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::{Method, StatusCode, Uri},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{any, get, post},
};
use serde_json::json;

use crate::{api::error::ApiError, state::Shared};

/// Returns all routes.
pub(crate) fn router(state: Shared) -> Router {
    let max_body = state.limits().max_body;
    let keyed = Router::new()
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/completions", post(completions::complete))
        .route("/v1/embeddings", post(embeddings::embed))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{model}", get(models::one))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/apply-template", post(tokens::apply_template))
        .route("/metrics", get(observe::metrics))
        .route("/status.json", get(observe::status))
        .route("/openapi.json", get(observe::openapi))
        .layer(middleware::from_fn_with_state(state.clone(), access::check_key));
    // Whatever its path is, it takes another key than a client's.
    let admin = Router::new()
        .route("/admin/reload", post(admin::reload))
        .route("/admin/{*path}", any(no_path))
        .layer(middleware::from_fn_with_state(state.clone(), access::check_admin));
    let routes = Router::new()
        .route("/", get(pages::chat))
        .route("/status", get(pages::status))
        .route("/assets/{*path}", get(pages::asset))
        .route("/health/live", get(|| async { Json(json!({ "status": "ok" })) }))
        .route("/health/ready", get(ready))
        .merge(keyed)
        .merge(admin)
        .fallback(no_path)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(max_body));
    let routes = match state.cors_origins() {
        [] => routes,
        origins => routes.layer(origin::cors(origins)),
    };
    routes
        .layer(middleware::from_fn_with_state(state.clone(), origin::check_host))
        .layer(middleware::from_fn_with_state(state.clone(), observe::record))
        .with_state(state)
}

/// Says whether all models can answer, for whoever spreads requests over servers.
async fn ready(State(state): State<Shared>) -> Response {
    let mut models = state.models().all();
    models.retain(|model| !model.is_ready());
    let stopped: Vec<&str> = models.iter().map(|model| model.name()).collect();
    if stopped.is_empty() {
        return Json(json!({ "status": "ok" })).into_response();
    }
    let body = json!({ "status": "unavailable", "stopped": stopped });
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

async fn no_path(method: Method, uri: Uri) -> ApiError {
    ApiError::no_path(method.as_str(), uri.path())
}

async fn not_allowed(method: Method, uri: Uri) -> Response {
    let mut response = ApiError::no_path(method.as_str(), uri.path()).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}
