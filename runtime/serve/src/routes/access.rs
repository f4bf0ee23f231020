//! Who may ask for what.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use crate::{api::error::ApiError, state::Shared};

/// Lets requests with a client's key through.
pub(super) async fn check_key(State(state): State<Shared>, request: Request, next: Next) -> Response {
    if state.allows(bearer(request.headers())) {
        next.run(request).await
    } else {
        ApiError::unauthorized().into_response()
    }
}

/// Lets requests with the admin key through. Without such a key there is no administration by HTTP.
pub(super) async fn check_admin(State(state): State<Shared>, request: Request, next: Next) -> Response {
    match state.allows_admin(bearer(request.headers())) {
        Some(true) => next.run(request).await,
        Some(false) => ApiError::unauthorized_admin().into_response(),
        None => ApiError::no_admin().into_response(),
    }
}

/// Returns the key of a request. The scheme has no case.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}
