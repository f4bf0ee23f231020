//! The command line.

mod limits;

use std::{
    net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    time::Duration,
};

use axum::http::{HeaderValue, Uri};
use clap::Parser;
use mlxcel_runtime::{CacheSize, DeviceSpec, LoadOptions, Trace};
use mlxcel_serve::{Tls, TlsError};

use self::limits::LimitOptions;
use crate::{integer::integer, named::NamedBundle, note::LogFormat, origin::Origin};

/// Serve bundles over HTTP, in the wire format of OpenAI's API.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    /// The bundles: folders, or names in the store. Each is served under its name, or the one before it
    #[arg(required = true, value_name = "[NAME=]BUNDLE")]
    pub(crate) bundles: Vec<NamedBundle>,
    /// The address and port to listen on, or a port alone, on loopback
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// The checkpoint's folder, or a safetensors file, for bundles without weights
    #[arg(long, value_name = "PATH")]
    pub(crate) weights: Option<PathBuf>,
    /// A file of keys, one in each line, of which clients need one
    #[arg(long, value_name = "FILE")]
    pub(crate) api_keys: Option<PathBuf>,
    /// A file with the key that /admin/ takes
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_key: Option<PathBuf>,
    /// A file with the certificate of the server and those that vouch for it, in PEM form. It makes clients use HTTPS
    #[arg(long, value_name = "FILE", requires = "ssl_key_file")]
    pub(crate) ssl_cert_file: Option<PathBuf>,
    /// A file with the key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "ssl_cert_file")]
    pub(crate) ssl_key_file: Option<PathBuf>,
    /// A name that clients may know the server by, or `*`. By default it has any, unless it listens on loopback without
    /// keys: then only its machine's
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// An origin whose web pages may ask, such as `https://chat.example.org`, or `*`
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) cors_origin: Vec<HeaderValue>,
    /// Requests of each bundle that may wait
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub(crate) queue: usize,
    /// A file of a minisign secret key, which signs receipts
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt_key: Option<PathBuf>,
    /// Read the password of the receipt key from the first line of this file
    #[arg(long, value_name = "FILE", requires = "receipt_key")]
    pub(crate) receipt_key_password: Option<PathBuf>,
    /// The device: auto, local-task, local-sync, cuda or vulkan; `cuda:1` is the second GPU
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceSpec,
    /// Threads of local-task [default: one for each physical core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true,
        value_parser = integer::<usize>(1..=u64::MAX, "leave it out for one thread for each physical core"))]
    pub(crate) threads: Option<usize>,
    /// Tokens of context [default: the bundle's]
    #[arg(short, long, value_name = "N")]
    pub(crate) ctx_size: Option<usize>,
    /// Memory for keys and values of each bundle, such as 4GiB [default: one context for each of 16 requests, if memory allows]
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache_size: Option<CacheSize>,
    /// Seconds that answers have to end after SIGTERM
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    drain: u64,
    /// The form of the log on stderr, which has a line for each request
    #[arg(long, value_enum, default_value = "text", value_name = "FORM")]
    pub(crate) log: LogFormat,
    /// Write the bodies of requests to the log, prompts included
    #[arg(long)]
    pub(crate) log_prompts: bool,
    /// Where a collector of OpenTelemetry takes spans, such as http://127.0.0.1:4318
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<String>,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) origin: Origin,
}

/// Requests whose contexts have room by default.
const SEQUENCES: usize = 16;

impl Options {
    /// Returns how a bundle is loaded whose cache has a share of the memory.
    pub(crate) fn load_options(&self, cache_memory: Option<u64>) -> LoadOptions {
        LoadOptions {
            device: self.device,
            threads: self.threads,
            context: self.ctx_size,
            cache: self.cache_size.unwrap_or(CacheSize::Sequences(SEQUENCES)),
            cache_memory,
            trace: Trace::off(),
        }
    }

    /// Returns the names that the server may have besides its machine's. Who has a key needs no such protection.
    pub(crate) fn hosts(&self, has_keys: bool) -> Option<Vec<String>> {
        let is_checked = !self.allowed_host.is_empty() || (self.listen.ip().is_loopback() && !has_keys);
        is_checked.then(|| self.allowed_host.clone())
    }

    /// Returns what connections are encrypted with, if they are.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, TlsError> {
        let files = self.ssl_cert_file.as_ref().zip(self.ssl_key_file.as_ref());
        files.map(|(certificate, key)| Tls::read(certificate, key)).transpose()
    }

    /// Returns the time that answers have to end.
    pub(crate) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }
}

/// Parses an address with its port. The name of a machine stands for its first address, and a port alone for loopback.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let expected = "expected an address with a port such as 0.0.0.0:8080, or a port";
    match text.to_socket_addrs().map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(format!("found {text}, which has no address, {expected}")),
        Err(_) => Err(format!("found {text}, {expected}")),
    }
}

/// Parses an origin of web pages.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let is_origin = text.parse::<Uri>().is_ok_and(|uri| {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        matches!(uri.scheme_str(), Some(scheme) if text == format!("{scheme}://{authority}"))
    });
    let value = HeaderValue::from_str(text).ok().filter(|_| is_origin || text == "*");
    value.ok_or_else(|| format!("found {text}, expected an origin such as https://chat.example.org, or *"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(arguments: &[&str], has_keys: bool) -> Option<Vec<String>> {
        Options::parse_from(["mlxcel-serve", "a"].iter().chain(arguments)).hosts(has_keys)
    }

    #[test]
    fn a_server_on_loopback_without_keys_has_known_names() {
        assert_eq!(hosts(&[], false), Some(vec![]));
        assert_eq!(hosts(&[], true), None);
        assert_eq!(hosts(&["--listen", "0.0.0.0:80"], false), None);
        assert_eq!(hosts(&["--listen", "[::]:80", "--allowed-host", "a"], true), Some(vec!["a".into()]));
    }

    #[test]
    fn addresses() {
        for (text, expected) in
            [("8081", "127.0.0.1:8081"), ("0.0.0.0:80", "0.0.0.0:80"), ("[::1]:8080", "[::1]:8080")]
        {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        assert!(address("localhost:8080").unwrap().ip().is_loopback());
        for text in ["", "70000", "0.0.0.0", "127.0.0.1:", ":x", "http://127.0.0.1:80"] {
            let expected =
                format!("found {text}, expected an address with a port such as 0.0.0.0:8080, or a port");
            assert_eq!(address(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn origins() {
        for text in ["*", "https://chat.example.org", "http://localhost:3000"] {
            assert_eq!(origin(text).unwrap(), text);
        }
        for text in ["", "null", "chat.example.org", "https://chat.example.org/", "https://", "https://a/b"] {
            let expected = format!("found {text}, expected an origin such as https://chat.example.org, or *");
            assert_eq!(origin(text).unwrap_err(), expected);
        }
    }
}
