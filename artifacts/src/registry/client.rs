//! The connection to a registry.

use std::{net::IpAddr, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;
use oci_client::{
    Client, Reference,
    client::{ClientConfig, ClientProtocol},
    secrets::RegistryAuth,
};

use super::credentials::DockerConfig;
use crate::{cancel::Cancel, error::Error};

/// The longest time without a byte before a transfer counts as stopped.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time that a registry may take to store a file that it has received.
const STORING: Duration = Duration::from_secs(600);

/// How often the token is looked at, and a lock of another process.
pub(super) const POLL: Duration = Duration::from_millis(50);

/// How long an upload may stand still.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Before the last byte was taken.
    pub(super) byte: Duration,
    /// After it, when the registry stores and hashes what it got.
    pub(super) answer: Duration,
}

/// A reference in a registry: `registry.example/models/demo:1`.
pub struct Registry {
    pub(super) runtime: tokio::runtime::Runtime,
    pub(super) client: Client,
    /// For uploads. The other's limit for reading counts while it sends, too.
    pub(super) uploads: Client,
    pub(super) patience: Patience,
    /// The reference as the caller wrote it.
    pub(super) name: String,
    pub(super) reference: Reference,
    pub(super) auth: RegistryAuth,
    pub(super) cancel: Cancel,
}

impl Registry {
    /// Prepares transfers to and from the reference `name`, with the credentials that `docker` has for its registry.
    ///
    /// Uses HTTPS, but plain HTTP for registries on this machine and with `plain_http`.
    ///
    /// # Errors
    /// `name` is not a reference, or the credentials cannot be read.
    pub fn new(name: &str, docker: &DockerConfig, plain_http: bool) -> Result<Self, Error> {
        Self::with_patience(name, docker, plain_http, Patience { byte: TIMEOUT, answer: STORING })
    }

    pub(super) fn with_patience(
        name: &str,
        docker: &DockerConfig,
        plain_http: bool,
        patience: Patience,
    ) -> Result<Self, Error> {
        // Docker takes a reference without a registry for one of docker.io, where nobody wants to push by mistake.
        let (host, _) = name.split_once('/').unwrap_or_default();
        if !host.contains(['.', ':']) && host != "localhost" {
            let source = "found no registry, expected one before the first `/`".into();
            return Err(Error::Reference { found: name.to_owned(), source });
        }
        let reference: Reference = name
            .parse()
            .map_err(|source| Error::Reference { found: name.to_owned(), source: Box::new(source) })?;
        let host = reference.resolve_registry().to_owned();
        let auth = docker.credentials(&host)?;
        let protocol = if plain_http || is_loopback(&host) {
            ClientProtocol::HttpsExcept(vec![host])
        } else {
            ClientProtocol::Https
        };
        // Fails if the program has installed a provider, which then stays.
        _ = rustls::crypto::ring::default_provider().install_default();
        let client = |read_timeout| {
            Client::new(ClientConfig {
                protocol: protocol.clone(),
                use_monolithic_push: true,
                read_timeout,
                connect_timeout: Some(TIMEOUT),
                user_agent: concat!("mlxcel/", env!("CARGO_PKG_VERSION")),
                platform_resolver: None,
                ..ClientConfig::default()
            })
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            runtime: runtime.map_err(Error::read("the network"))?,
            client: client(Some(patience.byte)),
            uploads: client(None),
            patience,
            name: name.to_owned(),
            reference,
            auth,
            cancel: Cancel::new(),
        })
    }

    /// Ends a transfer with an error soon after the token is cancelled.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }

    /// Runs the transfer `doing` until it ends or is cancelled.
    ///
    /// The client panics over some answers that no registry should give, such as a token with a line break.
    pub(super) fn run<T>(
        &self,
        doing: &'static str,
        transfer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let cancelled = async {
            while !self.cancel.is_cancelled() {
                tokio::time::sleep(POLL).await;
            }
        };
        self.runtime.block_on(async {
            tokio::select! {
                ended = AssertUnwindSafe(transfer).catch_unwind() => match ended {
                    Ok(Err(_)) if self.cancel.is_cancelled() => Err(self.cancelled(doing)),
                    Ok(ended) => ended,
                    Err(_) => Err(self.nonsense(doing)),
                },
                () = cancelled => Err(self.cancelled(doing)),
            }
        })
    }
}

/// Returns whether `host` is this machine. Docker uses plain HTTP for these too.
fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_use_plain_http() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.1.2.3", "[::1]:5000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "127.0.0.1.example:80", "10.0.0.1:5000", "example:5000"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
