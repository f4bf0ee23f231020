//! TLS, other origins, and names of the server.

use std::{fs, io, path::Path, sync::Arc};

use mlxcel_serve::{Settings, Tls, TlsError};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use reqwest::{Client, Method};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer},
};

use crate::scripted::{Server, Speed};

/// Writes files with a certificate and its key. Returns it.
fn write_pair(folder: &Path, name: &str) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join(format!("{name}.crt")), cert.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

/// Writes files with two certificates and their keys.
fn certificates() -> (TempDir, CertificateDer<'static>) {
    let folder = TempDir::new().unwrap();
    write_pair(folder.path(), "other");
    let certificate = write_pair(folder.path(), "mine");
    (folder, certificate)
}

/// What a client sends.
const REQUEST: &[u8] = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Opens a connection of a client that trusts a certificate alone.
async fn connect(server: &Server, certificate: CertificateDer<'static>) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let address = server.url("").strip_prefix("http://").unwrap().to_owned();
    let stream = TcpStream::connect(&address).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect("localhost".try_into().unwrap(), stream).await
}

#[tokio::test]
async fn connections_are_encrypted() {
    let (folder, certificate) = certificates();
    let tls = Tls::read(&folder.path().join("mine.crt"), &folder.path().join("mine.key")).unwrap();
    let server = Server::with(Speed::Fast, Settings { tls: Some(tls), ..Settings::default() }).await;
    let mut stream = connect(&server, certificate).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    stream.write_all(REQUEST).await.unwrap();
    let mut text = String::new();
    // It ends with TLS's own end, so that nobody can cut an answer.
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("{\"status\":\"ok\"}"), "{text}");

    let address = server.url("").strip_prefix("http://").unwrap().to_owned();
    // Who does not speak TLS gets no answer.
    let mut plain = TcpStream::connect(&address).await.unwrap();
    plain.write_all(REQUEST).await.unwrap();
    let mut answer = Vec::new();
    _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn certificates_are_read_again() {
    let (folder, old) = certificates();
    let tls = Tls::read(&folder.path().join("mine.crt"), &folder.path().join("mine.key")).unwrap();
    let settings = Settings { tls: Some(tls.clone()), ..Settings::default() };
    let server = Server::with(Speed::Fast, settings).await;
    let new = write_pair(folder.path(), "mine");
    connect(&server, new.clone()).await.unwrap_err();
    tls.reload().unwrap();
    connect(&server, new.clone()).await.unwrap();
    connect(&server, old).await.unwrap_err();
    // A pair that is none changes nothing.
    fs::copy(folder.path().join("other.key"), folder.path().join("mine.key")).unwrap();
    assert!(matches!(tls.reload(), Err(TlsError::Mismatch { .. })));
    connect(&server, new).await.unwrap();
}

#[test]
fn files_that_are_no_pair() {
    let (folder, _) = certificates();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("empty"), "").unwrap();
    fs::write(path("broken"), "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n").unwrap();
    fs::write(path("nonsense"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let refused = |certificate: &str, key: &str| {
        let error = Tls::read(&path(certificate), &path(key)).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    insta::assert_snapshot!(
        [
            refused("none", "mine.key"),
            refused("mine.crt", "none"),
            refused("empty", "mine.key"),
            refused("mine.key", "mine.key"),
            refused("mine.crt", "mine.crt"),
            refused("mine.crt", "other.key"),
            refused("broken", "mine.key"),
            refused("nonsense", "mine.key"),
        ]
        .join("\n"),
        @r"
    cannot read none
    cannot read none
    empty has no certificate, expected one in PEM form
    hint: such a file has a line `-----BEGIN CERTIFICATE-----`
    mine.key has no certificate, expected one in PEM form
    hint: such a file has a line `-----BEGIN CERTIFICATE-----`
    mine.crt has no private key, expected one in PEM form
    hint: such a file has a line `-----BEGIN PRIVATE KEY-----`
    the key of other.key is not that of the certificate in mine.crt, expected a pair
    broken cannot be parsed: base64 decode error: InvalidCharacter(33), expected PEM
    nonsense and mine.key cannot be used: invalid peer certificate: BadEncoding
    "
    );
}

#[tokio::test]
async fn pages_of_other_origins_ask_if_they_may() {
    let origin = "https://chat.example.org";
    let settings = Settings {
        api_keys: vec!["one".into()],
        cors_origins: vec![origin.parse().unwrap()],
        ..Settings::default()
    };
    let server = Server::with(Speed::Fast, settings).await;
    let ask = async |server: &Server, method: Method, origin: &str| {
        let request = Client::new().request(method, server.url("/v1/models")).header("origin", origin);
        let request = request
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,x-stainless-lang");
        let response = request.send().await.unwrap();
        let header =
            |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        (
            response.status().as_u16(),
            header("access-control-allow-origin"),
            header("access-control-allow-headers"),
        )
    };
    let allowed = Some(origin.to_owned());
    let headers = Some("authorization,x-stainless-lang".to_owned());
    // A browser asks without the key first.
    assert_eq!(ask(&server, Method::OPTIONS, origin).await, (200, allowed.clone(), headers));
    assert_eq!(ask(&server, Method::GET, origin).await, (401, allowed, None));
    assert_eq!(ask(&server, Method::OPTIONS, "https://evil.example.org").await.1, None);
    let server = Server::start(Speed::Fast).await;
    assert_eq!(ask(&server, Method::GET, origin).await, (200, None, None));
    assert_eq!(ask(&server, Method::OPTIONS, origin).await, (405, None, None));
}

#[tokio::test]
async fn names_of_the_server_are_checked() {
    let hosts = Some(vec!["chat.example.org".to_owned()]);
    let server = Server::with(Speed::Fast, Settings { hosts, ..Settings::default() }).await;
    let get = async |host: &str| {
        let request = Client::new().get(server.url("/v1/models")).header("host", host);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<serde_json::Value>().await.unwrap())
    };
    for host in ["localhost:1", "127.0.0.1", "chat.example.org"] {
        assert_eq!(get(host).await.0, 200, "{host}");
    }
    let error = json!({
        "message": "the host is `evil.example.org:80`, expected localhost, an address, or one by --allowed-host",
        "type": "invalid_request_error", "param": null, "code": "unknown_host",
    });
    assert_eq!(get("evil.example.org:80").await, (403, json!({ "error": error })));
}
