//! Bodies of requests.

use axum::{
    body::Bytes,
    extract::rejection::BytesRejection,
    http::{HeaderMap, header},
};

use crate::{api::error::ApiError, state::State};

/// A body, or why it cannot be read.
pub(super) type Body = Result<Bytes, BytesRejection>;

/// Checks that a body is JSON by its type. Browsers send other types to any server without asking it.
pub(super) fn json_body(state: &State, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let body = body.map_err(|error| ApiError::body(&error, state.max_body()))?;
    let found = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("absent");
    let essence = found.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") { Ok(body) } else { Err(ApiError::not_json(found)) }
}
