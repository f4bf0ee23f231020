//! Spans, as a collector of OpenTelemetry gets them.
#![cfg(feature = "otel")]
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

#[path = "../scripted/mod.rs"]
#[allow(dead_code, reason = "the tests of answers need more of it")]
mod scripted;

use mlxcel_serve::{Traces, TracesError};
use reqwest::Client;
use scripted::{Server, Speed, until};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    runtime::Handle,
    task,
};

/// A field of a protobuf message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// A span.
#[derive(Debug, Default)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    start: u64,
    end: u64,
}

/// Takes a number of protobuf's variable length.
fn varint(bytes: &mut &[u8]) -> u64 {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let (number, rest) = bytes.split_at(end + 1);
    *bytes = rest;
    number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
}

/// Returns the fields of a protobuf message with their numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            kind => {
                let length = match kind {
                    1 => 8,
                    2 => usize::try_from(varint(&mut bytes)).unwrap(),
                    5 => 4,
                    other => panic!("unknown kind {other}"),
                };
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                if kind == 1 {
                    Field::Number(u64::from_le_bytes(value.try_into().unwrap()))
                } else {
                    Field::Bytes(value)
                }
            }
        };
        found.push((tag >> 3, field));
    }
    found
}

/// Returns the messages in a field of a message.
fn messages(bytes: &[u8], number: u64) -> Vec<&[u8]> {
    let fields = fields(bytes).into_iter();
    fields
        .filter_map(|(found, field)| match field {
            Field::Bytes(bytes) if found == number => Some(bytes),
            _ => None,
        })
        .collect()
}

fn span(bytes: &[u8]) -> Span {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut span = Span::default();
    for (number, field) in fields(bytes) {
        match (number, field) {
            (1, Field::Bytes(bytes)) => span.trace = hex(bytes),
            (2, Field::Bytes(bytes)) => span.id = hex(bytes),
            (4, Field::Bytes(bytes)) => span.parent = hex(bytes),
            (5, Field::Bytes(bytes)) => span.name = String::from_utf8(bytes.to_vec()).unwrap(),
            (7, Field::Number(start)) => span.start = start,
            (8, Field::Number(end)) => span.end = end,
            _ => {}
        }
    }
    span
}

/// Takes one export and returns its path and spans.
async fn collect(listener: TcpListener) -> (String, Vec<Span>) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let of_resources = messages(&body, 1);
    let of_scopes = of_resources.iter().flat_map(|resource| messages(resource, 2));
    let spans = of_scopes.flat_map(|scope| messages(scope, 2)).map(span).collect();
    (head.lines().next().unwrap().to_owned(), spans)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_spans() {
    assert!(matches!(
        Traces::start("https://localhost", Handle::current()),
        Err(TracesError::Endpoint { .. })
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let collected = tokio::spawn(collect(listener));
    let traces = Traces::start(&format!("http://{address}/"), Handle::current()).unwrap();
    let server = Server::start(Speed::Slow).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let request = Client::new()
        .post(server.url("/v1/completions"))
        .header("traceparent", format!("00-{trace}-b7ad6b7169203331-01"))
        .json(&json!({ "prompt": "a", "max_tokens": 5, "stream": true }));
    request.send().await.unwrap().bytes().await.unwrap();
    // A probe is none. A request that is counted was exported.
    until(async || {
        let metrics = Client::new().get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
        let name = "requests_total{model_name=\"scripted\",endpoint=\"/v1/completions\"";
        if metrics.contains(name) { Ok(()) } else { Err(metrics) }
    })
    .await;
    task::spawn_blocking(|| traces.stop()).await.unwrap();
    let (path, spans) = collected.await.unwrap();
    assert_eq!(path, "post /v1/traces http/1.1");
    let of = |name: &str| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
    };
    let request = of("POST /v1/completions");
    assert_eq!((request.trace.as_str(), request.parent.as_str()), (trace, "b7ad6b7169203331"));
    let mut last = request.start;
    for name in ["queue", "prefill", "decode"] {
        let part = of(name);
        assert_eq!((&part.trace, &part.parent), (&request.trace, &request.id), "{name}");
        assert!(last <= part.start && part.start < part.end && part.end <= request.end, "{spans:?}");
        last = part.end;
    }
    assert_eq!(spans.len(), 4, "{spans:?}");
}
