//! Errors in OpenAI's form.

use std::{error, time::Duration};

use axum::{
    Json,
    extract::rejection::BytesRejection,
    http::{
        HeaderValue, StatusCode,
        header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use mlxcel_artifacts::report;
use mlxcel_runtime::{EngineError, Error, receipt::ReceiptError};
use serde_json::json;

use crate::reload::ReloadError;

/// Seconds after which a client may ask again.
const RETRY_SECONDS: u16 = 1;

/// The longest message and the longest name of a field, in characters. What a client sent may stand in them.
const MAX_MESSAGE: usize = 2000;
const MAX_PARAM: usize = 200;

/// An answer that says what is wrong: `{"error": {"message", "type", "param", "code"}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    param: Option<String>,
    code: Option<&'static str>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: shortened(message.into(), MAX_MESSAGE), param: None, code: None }
    }

    /// Refuses a request: 400.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// Refuses a field of a request: 400.
    pub(crate) fn invalid_field(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(shortened(param.into(), MAX_PARAM)), ..Self::invalid(message) }
    }

    /// Names the field that a refusal is about, unless one is named. Failures of the server are about none.
    pub(crate) fn about(self, param: &str) -> Self {
        match self.param {
            None if self.status.is_client_error() => Self { param: Some(param.to_owned()), ..self },
            _ => self,
        }
    }

    /// Refuses a request that is longer than the context: 400.
    pub(crate) fn context_exceeded(message: impl Into<String>) -> Self {
        Self { code: Some("context_length_exceeded"), ..Self::invalid(message) }
    }

    /// Refuses a body that is no JSON by its type: 415.
    pub(crate) fn not_json(found: &str) -> Self {
        let message = format!("the content type is {found}, expected application/json");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
    }

    /// Refuses a body that is too large: 413.
    pub(crate) fn large_body(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes, expected at most that");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
    }

    /// Refuses a body that does not arrive: 408.
    pub(crate) fn slow_body(limit: Duration) -> Self {
        let message =
            format!("the body took longer than {} s, expected all of it by then", limit.as_secs_f64());
        let error = Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message);
        Self { code: Some("body_timeout"), ..error }
    }

    /// Refuses a body that is too large, or that broke off: 413 or 400.
    pub(crate) fn body(error: &BytesRejection, limit: usize) -> Self {
        if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return Self::large_body(limit);
        }
        Self::invalid("the body broke off, or its chunks are not those of HTTP, expected all of it")
    }

    /// Refuses a request without a key: 401.
    pub(crate) fn unauthorized() -> Self {
        let message = "found no valid API key, expected `Authorization: Bearer KEY`";
        let error = Self::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message);
        Self { code: Some("invalid_api_key"), ..error }
    }

    /// Refuses a request to a name that the server does not have: 403.
    pub(crate) fn unknown_host(found: &str) -> Self {
        let message =
            format!("the host is `{found:.200}`, expected localhost, an address, or one by --allowed-host");
        let error = Self::new(StatusCode::FORBIDDEN, "invalid_request_error", message);
        Self { code: Some("unknown_host"), ..error }
    }

    /// Refuses administration by HTTP, for which there is no key: 403.
    pub(crate) fn no_admin() -> Self {
        let message = "the server has no admin key, expected one by --admin-key or MLXCEL_ADMIN_KEY";
        let error = Self::new(StatusCode::FORBIDDEN, "invalid_request_error", message);
        Self { code: Some("no_admin_key"), ..error }
    }

    /// Refuses a request without the admin key: 401.
    pub(crate) fn unauthorized_admin() -> Self {
        let message = "found no admin key, expected `Authorization: Bearer KEY` with the key of --admin-key";
        Self { message: message.to_owned(), ..Self::unauthorized() }
    }

    /// There is no such path: 404.
    pub(crate) fn no_path(method: &str, path: &str) -> Self {
        let versioned = ["/chat/completions", "/completions", "/embeddings", "/models"].contains(&path);
        let expected = if versioned { format!(", expected /v1{path}") } else { String::new() };
        let message = format!("found no {method} {path}{expected}");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    /// There are too many requests: 429.
    fn busy(message: String) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        Self { code: Some("queue_full"), ..error }
    }

    /// A request took too long: 504.
    pub(crate) fn timed_out(limit: Duration) -> Self {
        let message = format!(
            "the request took longer than {} s, the most that the server gives it",
            limit.as_secs_f64()
        );
        let error = Self::new(StatusCode::GATEWAY_TIMEOUT, "server_error", message);
        Self { code: Some("request_timeout"), ..error }
    }

    /// The server is about to end: 503.
    pub(crate) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", "the server is shutting down")
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the code, or the type of an error without one.
    pub(crate) fn name(&self) -> ErrorName {
        ErrorName(self.code.unwrap_or(self.kind))
    }

    /// Returns the object, as it is in a stream too.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let Self { status: _, kind, message, param, code } = self;
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
    }
}

/// Cuts a text that is too long.
fn shortened(mut text: String, limit: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(limit) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for ApiError {
    fn from(error: &Error) -> Self {
        let message = first_line(error);
        match error {
            Error::TooLong { .. } | Error::Engine(EngineError::NeverFits { .. }) => {
                Self::context_exceeded(message)
            }
            Error::Text { reason, .. } => Self {
                param: Some("input".into()),
                code: matches!(**reason, Error::TooLong { .. }).then_some("context_length_exceeded"),
                ..Self::invalid(message)
            },
            Error::NoTokens
            | Error::TokenOutOfRange { .. }
            | Error::BadSampling { .. }
            | Error::ChatTemplate(_)
            | Error::NoVocabulary { .. }
            | Error::Engine(
                EngineError::BadChange { .. }
                | EngineError::BiasedToken { .. }
                | EngineError::Grammar { .. }
                | EngineError::BadSpeculation { .. },
            ) => Self::invalid(message),
            Error::Engine(EngineError::QueueFull { .. }) => Self::busy(message),
            Error::Engine(EngineError::DeviceLost { .. }) => {
                let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
                Self { code: Some("device_lost"), ..error }
            }
            Error::Engine(EngineError::Closed | EngineError::Stopped { .. }) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message)
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message),
        }
    }
}

impl From<ReloadError> for ApiError {
    fn from(error: ReloadError) -> Self {
        let (status, param, code) = match &error {
            ReloadError::NotNamed { .. } => (StatusCode::BAD_REQUEST, "model", "model_missing"),
            ReloadError::NotServed { .. } => (StatusCode::NOT_FOUND, "model", "model_not_found"),
            ReloadError::Busy(_) => (StatusCode::CONFLICT, "model", "reload_in_progress"),
            ReloadError::OtherDigest { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "digest", "digest_mismatch")
            }
            ReloadError::Load { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "bundle", "load_failed"),
        };
        let error = Self::new(status, "invalid_request_error", first_line(&error));
        Self { param: Some(param.into()), code: Some(code), ..error }
    }
}

impl From<ReceiptError> for ApiError {
    fn from(error: ReceiptError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", first_line(&error))
    }
}

/// Returns an error with its causes. Hints, which name options of programs, are in other lines.
fn first_line(error: &(dyn error::Error + 'static)) -> String {
    let text = report(error);
    text.strip_prefix("error: ").unwrap_or(&text).lines().next().unwrap_or_default().to_owned()
}

/// The name of an answer's error, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorName(pub(crate) &'static str);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.to_json())).into_response();
        response.extensions_mut().insert(self.name());
        let headers = response.headers_mut();
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS)),
            StatusCode::UNAUTHORIZED => headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            // OpenAI's clients would ask for the same again, twice.
            StatusCode::GATEWAY_TIMEOUT => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"))
            }
            StatusCode::REQUEST_TIMEOUT => headers.insert(CONNECTION, HeaderValue::from_static("close")),
            _ => None,
        };
        response
    }
}
