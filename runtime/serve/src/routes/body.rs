//! Bodies of requests.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::header,
};
use hyper::body::Body as _;
use tokio::time::timeout;

use crate::{api::error::ApiError, observe::record::Record, state::Shared};

/// A body that is JSON by its type. Browsers send other types to any server without asking it.
pub(super) struct JsonBody(pub(super) Bytes);

impl FromRequest<Shared> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, ApiError> {
        let found = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let found = found.unwrap_or("absent").to_owned();
        let limits = state.limits();
        // What says its size is refused before it is sent.
        if request.body().size_hint().lower() > limits.max_body as u64 {
            return Err(ApiError::large_body(limits.max_body));
        }
        let record = request.extensions().get::<Record>().filter(|_| state.logs_prompts()).cloned();
        let body = timeout(limits.body, Bytes::from_request(request, state)).await;
        let body = body.map_err(|_| ApiError::slow_body(limits.body))?;
        let body = body.map_err(|error| ApiError::body(&error, limits.max_body))?;
        if let Some(record) = record {
            record.log_body(&body);
        }
        let essence = found.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Ok(Self(body))
        } else {
            Err(ApiError::not_json(&found))
        }
    }
}
