//! Requests to the hub, and what its refusals mean.

use std::{net::IpAddr, time::Duration};

use hf_hub::{
    Cache, Repo, RepoType,
    api::sync::{Api, ApiBuilder, ApiRepo},
};
use mlxcel_artifacts::Cancel;
use serde::Deserialize;
use ureq::{
    Agent, Body, Proxy,
    config::AutoHeaderValue,
    http::{HeaderMap, Response, StatusCode, Uri, header},
    tls::{RootCerts, TlsConfig},
};

use crate::hub::{
    digest::HubDigest,
    error::HubError,
    interrupt,
    name::{HubName, is_commit},
    settings::HubSettings,
    snapshot::{Listing, RemoteFile},
};

/// How long a connection may take, and how long it may be silent.
const CONNECT: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(60);

/// The longest list of files that is read.
const LISTING_LIMIT_BYTES: u64 = 64 << 20;

const REDIRECTS: usize = 10;

/// A client for one repository.
pub(super) struct Client<'c> {
    settings: &'c HubSettings,
    name: &'c HubName,
    cancel: &'c Cancel,
    api: Api,
    /// Follows no redirects, because only the first answer has the digest, and no other host gets the token.
    agent: Agent,
}

/// The bytes of a file, from `start` on.
pub(super) struct Answer {
    pub(super) digest: Option<HubDigest>,
    pub(super) size: Option<u64>,
    pub(super) start: u64,
    pub(super) body: Body,
}

#[derive(Deserialize)]
struct Info {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: Option<String>,
}

impl<'c> Client<'c> {
    /// Creates a client. It connects to nothing yet.
    pub(super) fn new(
        settings: &'c HubSettings,
        name: &'c HubName,
        cache: &Cache,
        cancel: &'c Cancel,
    ) -> Result<Self, HubError> {
        let api = ApiBuilder::from_cache(cache.clone())
            .with_endpoint(settings.endpoint.clone())
            .with_token(settings.token.clone())
            .with_progress(false)
            .with_user_agent("mlxcel-compile", env!("CARGO_PKG_VERSION"))
            .build()
            .map_err(|error| unreachable(settings, name, &error))?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(tls())
            .proxy(proxy(&settings.endpoint))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(SILENCE))
            // The bytes are compared with digests of what is not compressed.
            .accept_encoding(AutoHeaderValue::Provided("identity".to_owned().into()))
            .user_agent(format!("mlxcel-compile/{}", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Ok(Self { settings, name, cancel, api, agent })
    }

    fn at(&self, revision: &str) -> ApiRepo {
        self.api.repo(Repo::with_revision(self.name.repo().to_owned(), RepoType::Model, revision.to_owned()))
    }

    /// Waits for the answer to a request.
    fn answered<T: Send + 'static>(
        &self,
        request: impl FnOnce() -> Result<T, ureq::Error> + Send + 'static,
    ) -> Result<T, HubError> {
        let answer = interrupt::run(self.cancel, request).ok_or(HubError::Cancelled)?;
        answer.map_err(|error| unreachable(self.settings, self.name, &error))
    }

    /// Asks which commit the revision is, and which files it has.
    pub(super) fn listing(&self) -> Result<Listing, HubError> {
        let request = self.at(self.name.revision()).info_request().query("blobs", "true");
        let request = request.config().http_status_as_error(false).tls_config(tls());
        let request = request.proxy(proxy(&self.settings.endpoint)).timeout_connect(Some(CONNECT));
        let request = request.timeout_per_read(Some(SILENCE)).build();
        let (status, headers, bytes) = self.answered(move || {
            let (parts, mut body) = request.call()?.into_parts();
            let bytes = body.with_config().limit(LISTING_LIMIT_BYTES).read_to_vec()?;
            Ok((parts.status, parts.headers, bytes))
        })?;
        if status != StatusCode::OK {
            return Err(self.refusal(status, &headers, None));
        }
        let Info { sha, siblings } =
            serde_json::from_slice(&bytes).map_err(|error| self.answer(error.to_string()))?;
        if !is_commit(&sha) {
            let found = sha.chars().take(80).collect::<String>();
            return Err(self.answer(format!("found commit `{}`, expected 40 digits", found.escape_default())));
        }
        let file = |Sibling { rfilename, size, blob_id, lfs }: Sibling| {
            let stated = lfs.and_then(|lfs| lfs.sha256).or(blob_id);
            RemoteFile { name: rfilename, size, digest: stated.as_deref().and_then(HubDigest::parse) }
        };
        Ok(Listing { commit: sha, files: siblings.into_iter().map(file).collect() })
    }

    /// Asks for the bytes of a file from `start` on. The answer may begin earlier.
    pub(super) fn get(&self, file: &str, commit: &str, start: u64) -> Result<Answer, HubError> {
        let mut url = self.at(commit).url(&encode(file));
        let (mut digest, mut size) = (None, None);
        for _ in 0..REDIRECTS {
            let mut request = self.agent.get(&url);
            if let Some(token) = self.settings.token.as_ref().filter(|_| self.is_own(&url)) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            if start > 0 {
                request = request.header(header::RANGE, format!("bytes={start}-"));
            }
            let response = self.answered(move || request.call())?;
            let headers = response.headers();
            // What the first answer states is the hub's; later ones are those of a storage.
            digest = digest.or_else(|| stated_digest(headers));
            size = size.or_else(|| number(headers, "x-linked-size"));
            match response.status() {
                StatusCode::OK | StatusCode::PARTIAL_CONTENT => return self.body(response, digest, size),
                status if status.is_redirection() => {
                    let place = text(headers, "location").and_then(|place| join(&url, place));
                    url =
                        place.ok_or_else(|| self.answer(format!("found status {status} without a place")))?;
                }
                // What is here is as long as the file or longer.
                StatusCode::RANGE_NOT_SATISFIABLE if start > 0 => return self.get(file, commit, 0),
                status => return Err(self.refusal(status, headers, Some(file))),
            }
        }
        Err(self.answer(format!("found {REDIRECTS} redirects, expected fewer")))
    }

    fn body(
        &self,
        response: Response<Body>,
        digest: Option<HubDigest>,
        size: Option<u64>,
    ) -> Result<Answer, HubError> {
        let (parts, body) = response.into_parts();
        let (start, total) = match parts.status {
            StatusCode::PARTIAL_CONTENT => {
                let range = text(&parts.headers, "content-range").unwrap_or_default();
                let (start, total) = content_range(range)
                    .ok_or_else(|| self.answer(format!("found range `{}`", range.escape_default())))?;
                (start, Some(total))
            }
            _ => (0, number(&parts.headers, "content-length")),
        };
        Ok(Answer { digest, size: size.or(total), start, body })
    }

    /// Returns whether a URL is one of the hub, which may see the token.
    fn is_own(&self, url: &str) -> bool {
        let place = |url: &str| {
            let uri: Uri = url.parse().ok()?;
            Some((uri.scheme_str()?.to_owned(), uri.authority()?.to_string()))
        };
        let own = place(&self.settings.endpoint);
        own.is_some() && own == place(url)
    }

    /// Returns what a status other than success means, for the repository or one of its files.
    fn refusal(&self, status: StatusCode, headers: &HeaderMap, file: Option<&str>) -> HubError {
        let (endpoint, repo) = (self.settings.endpoint.clone(), self.name.repo().to_owned());
        let code = text(headers, "x-error-code").unwrap_or_default();
        match (status.as_u16(), code, file) {
            (401 | 403, "GatedRepo", _) => HubError::Gated { endpoint, repo },
            (401, ..) if self.settings.token.is_none() => HubError::NoToken { endpoint, repo },
            (401, ..) => HubError::BadToken { endpoint, repo },
            (403, ..) => HubError::Forbidden { endpoint, repo },
            (404, "RevisionNotFound", _) => {
                HubError::NoRevision { endpoint, repo, revision: self.name.revision().to_owned() }
            }
            (404, code, Some(file)) if code != "RepoNotFound" => {
                HubError::Gone { endpoint, repo, file: file.to_owned() }
            }
            (404, ..) => HubError::NoRepository { endpoint, repo, word: self.name.model().to_owned() },
            (status, ..) => HubError::Status { endpoint, repo, status },
        }
    }

    pub(super) fn answer(&self, problem: String) -> HubError {
        let (endpoint, repo) = (self.settings.endpoint.clone(), self.name.repo().to_owned());
        HubError::Answer { endpoint, repo, problem }
    }
}

/// Returns how servers are trusted: by the system's certificates.
fn tls() -> TlsConfig {
    TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build()
}

/// Returns the proxy of the environment. A mirror on this machine needs none, and no proxy would find it.
fn proxy(endpoint: &str) -> Option<Proxy> {
    let uri: Option<Uri> = endpoint.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_here { None } else { Proxy::try_from_env() }
}

fn unreachable(settings: &HubSettings, name: &HubName, error: &dyn std::error::Error) -> HubError {
    HubError::Unreachable {
        endpoint: settings.endpoint.clone(),
        name: name.clone(),
        reason: error.to_string().escape_debug().to_string(),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.trim().parse().ok()
}

/// Returns the digest that an answer states: of a large file, or else of this one.
fn stated_digest(headers: &HeaderMap) -> Option<HubDigest> {
    let tag = text(headers, "x-linked-etag").or_else(|| text(headers, "etag"))?;
    HubDigest::parse(tag.trim_start_matches("W/").trim_matches('"'))
}

/// Reads `bytes 5-9/10` as the first byte and the size.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, size.parse().ok()?))
}

/// Returns the URL of a redirect, which may be relative to the host.
fn join(url: &str, place: &str) -> Option<String> {
    if place.starts_with("http://") || place.starts_with("https://") {
        return Some(place.to_owned());
    }
    let uri: Uri = url.parse().ok()?;
    let path = place.strip_prefix('/').filter(|path| !path.starts_with('/'))?;
    Some(format!("{}://{}/{path}", uri.scheme_str()?, uri.authority()?))
}

/// Writes a file's path as part of a URL.
fn encode(path: &str) -> String {
    let mut encoded = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_and_ranges_are_read() {
        let url = "https://hub.example:8/a/b?c";
        assert_eq!(join(url, "/x/y").as_deref(), Some("https://hub.example:8/x/y"));
        assert_eq!(join(url, "http://cdn/z").as_deref(), Some("http://cdn/z"));
        for place in ["x", "//cdn/z", "file:///etc/passwd", ""] {
            assert_eq!(join(url, place), None, "{place}");
        }
        assert_eq!(content_range("bytes 5-9/10"), Some((5, 10)));
        for range in ["", "bytes */10", "bytes 5-9/*", "5-9/10"] {
            assert_eq!(content_range(range), None, "{range}");
        }
        assert_eq!(encode("q/a b-é.gguf"), "q/a%20b-%C3%A9.gguf");
    }

    #[test]
    fn only_the_hub_sees_the_token() {
        let settings = HubSettings {
            cache: None,
            endpoint: "https://hub.example".into(),
            token: Some("hf_x".into()),
            offline: false,
        };
        let (name, cache, cancel) =
            (HubName::parse("a/b").unwrap(), Cache::new("cache".into()), Cancel::new());
        let client = Client::new(&settings, &name, &cache, &cancel).unwrap();
        assert!(client.is_own("https://hub.example/a/b/resolve/main/config.json"));
        for url in ["http://hub.example/a", "https://hub.example.evil/a", "https://hub.example:444/a", "x"] {
            assert!(!client.is_own(url), "{url}");
        }
    }
}
