//! Which web pages may ask, and by which names the server is asked.

use axum::{
    extract::{Request, State},
    http::{
        HeaderName, HeaderValue, Method,
        header::{HOST, RETRY_AFTER},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use std::{net::IpAddr, time::Duration};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::{api::error::ApiError, observe::arrival::REQUEST_ID, state::Shared};

/// The time for which browsers remember what a page may.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Lets pages of other origins ask.
pub(super) fn cors(origins: &[HeaderValue]) -> CorsLayer {
    let is_any = origins.iter().any(|origin| origin == "*");
    let origin = if is_any { AllowOrigin::any() } else { AllowOrigin::list(origins.iter().cloned()) };
    CorsLayer::new()
        .allow_origin(origin)
        .allow_methods([Method::GET, Method::POST])
        // OpenAI's client has headers of its own.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([REQUEST_ID, RETRY_AFTER, HeaderName::from_static("x-should-retry")])
        .max_age(MAX_AGE)
}

/// Lets requests through that name the server as it is known. A web page can give its own name the server's address, and
/// then ask as if it were the server's page.
pub(super) async fn check_host(State(state): State<Shared>, request: Request, next: Next) -> Response {
    let headers = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    // A client that is no browser may give none.
    let mut hosts = headers.chain(request.uri().authority().map(Authority::as_str));
    match state.hosts().and_then(|known| hosts.find(|host| !is_known(host, known))) {
        None => next.run(request).await,
        Some(host) => ApiError::unknown_host(host).into_response(),
    }
}

/// Returns whether a host is an address, a name of this machine, or one of `known`.
fn is_known(host: &str, known: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    // No page has an address for its name, and browsers resolve localhost themselves.
    address.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || name.ends_with(".localhost")
        || known.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let known = ["Chat.example.org".to_owned()];
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.:80",
            "a.localhost",
            "127.0.0.1:8080",
            "10.1.2.3",
            "[::1]:8080",
            "chat.example.org",
            "chat.EXAMPLE.org:443",
        ] {
            assert!(is_known(host, &known), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org", "127.0.0.1.example.org", "a b", "evil:80:80", "[::1"]
        {
            assert!(!is_known(host, &known), "{host}");
        }
        assert!(is_known("example.org", &["*".into()]));
    }
}
