//! Bytes that are no proper requests.

use mlxcel_serve::Limits;
use tokio::io::AsyncWriteExt as _;

use crate::{
    scripted::MAX_BODY,
    wire::{answer, check, connect, exchange, get, post, rest, start, summary},
};

/// The answer to a head that is no HTTP.
const BAD: &str = "400";

/// The answer to a body that is not what its head says.
const BROKEN: &str = "400 {\"error\":{\"message\":\"the body broke off, or its chunks are not those of HTTP, expected all of it\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}";

/// The answer to a body that is too large.
const LARGE: &str = "413 {\"error\":{\"message\":\"the body is larger than 65536 bytes, expected at most that\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}";

/// The models of a server.
const LIVE: &str = "200 {\"status\":\"ok\"}";

fn line(line: &str) -> String {
    format!("{line}\r\nhost: localhost\r\nconnection: close\r\n\r\n")
}

fn with(header: &str) -> String {
    format!("GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\n\r\n")
}

fn chunked(body: &str) -> String {
    post("/tokenize", "transfer-encoding: chunked\r\nconnection: close\r\n", body)
}

#[tokio::test(flavor = "multi_thread")]
async fn heads() {
    let server = start(Limits::default()).await;
    let no_path = |message: &str| {
        let error = serde_json::json!({ "error": {
            "message": message, "type": "invalid_request_error", "param": null, "code": null,
        } });
        format!("404 {error}")
    };
    for (what, sent, expected) in [
        ("no HTTP", "hello\r\n\r\n".to_owned(), BAD),
        ("zeros", "\0".repeat(1000), BAD),
        ("the beginning of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0".into(), BAD),
        ("the beginning of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), ""),
        ("an unknown version", line("GET /health/live HTTP/3.0"), BAD),
        ("no version", line("GET /health/live"), BAD),
        ("a method that is no word", line("G\u{1}T /health/live HTTP/1.1"), BAD),
        ("a space in the path", line("GET /health live HTTP/1.1"), BAD),
        ("a path of 70,000 bytes", line(&format!("GET /{} HTTP/1.1", "a".repeat(70_000))), "431"),
        ("a header without a colon", with("x"), BAD),
        ("a space before a colon", with("content-length : 5"), BAD),
        ("a header over two lines", with("x: a\r\n b"), BAD),
        ("a zero in a header", with("x: a\0b"), BAD),
        ("a line feed alone", with("x: a\nx-b: c"), LIVE),
        ("101 headers", with(&vec!["x: y"; 101].join("\r\n")), "431"),
        ("98 headers", with(&vec!["x: y"; 98].join("\r\n")), LIVE),
        ("a header of 40,000 bytes", with(&format!("x: {}", "a".repeat(40_000))), "431"),
        ("a flood of headers", with(&vec!["x: y"; 1_000_000].join("\r\n")), "431"),
        ("two lengths that differ", with("content-length: 1\r\ncontent-length: 2"), BAD),
        ("a negative length", with("content-length: -1"), BAD),
        ("a length with a sign", with("content-length: +0"), BAD),
        ("a length that no number has", with("content-length: 99999999999999999999"), BAD),
        ("a list of lengths", with("content-length: 0, 0"), BAD),
        ("an encoding that is no last one", with("transfer-encoding: chunked, gzip"), BAD),
        ("an unknown encoding", with("transfer-encoding: xchunked"), BAD),
        (
            "an encoding of HTTP/1.0",
            "GET /health/live HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".into(),
            BAD,
        ),
        ("a path that climbs", get("/v1/../etc/passwd"), &no_path("found no GET /v1/../etc/passwd")),
        ("a zero in the path", get("/%00"), &no_path("found no GET /%00")),
        ("markup in the path", get("/%3Cscript%3E"), &no_path("found no GET /%3Cscript%3E")),
        ("a star", line("OPTIONS * HTTP/1.1"), &no_path("found no OPTIONS *")),
        ("a tunnel", line("CONNECT localhost:22 HTTP/1.1"), &no_path("found no CONNECT ")),
    ] {
        let expected: &[&str] = if expected.is_empty() { &[] } else { &[expected] };
        assert_eq!(summary(&exchange(&server, sent).await), expected, "{what}");
        check(&server, what).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies() {
    let server = start(Limits { max_body: MAX_BODY, ..Limits::default() }).await;
    let of_length = |length: usize, body: &str| {
        post("/tokenize", &format!("content-length: {length}\r\nconnection: close\r\n"), body)
    };
    let tokens = "200 {\"tokens\":[97]}";
    let chunk = "11\r\n{\"content\": \"a\"}\n\r\n";
    let large = "a".repeat(70_000);
    for (what, sent, expected) in [
        ("a body", of_length(16, "{\"content\": \"a\"}"), tokens),
        ("chunks", chunked(&format!("{chunk}0\r\n\r\n")), tokens),
        ("chunks with a trailer", chunked(&format!("{chunk}0\r\nx: y\r\n\r\n")), tokens),
        ("chunks of no size", chunked("zz\r\n"), BROKEN),
        ("a chunk of a negative size", chunked("-1\r\na\r\n"), BROKEN),
        ("a chunk that is too large for numbers", chunked("fffffffffffffffff\r\na"), BROKEN),
        ("a chunk that is longer than it says", chunked("1\r\nabc\r\n0\r\n\r\n"), BROKEN),
        ("a flood of extensions", chunked(&format!("1;{}\r\na\r\n", "x".repeat(20_000))), BROKEN),
        ("a large body", of_length(70_000, &large), LARGE),
        ("a large body of which nothing comes", of_length(70_000, ""), LARGE),
        ("a huge length", of_length(usize::MAX >> 2, ""), LARGE),
        ("large chunks", chunked(&format!("11170\r\n{large}\r\n0\r\n\r\n")), LARGE),
    ] {
        assert_eq!(summary(&exchange(&server, sent).await), [expected], "{what}");
        check(&server, what).await;
    }
    // The client reads the refusal, although it has sent what the server has not read.
    let sent = of_length(20_000_000, &"a".repeat(20_000_000));
    assert_eq!(summary(&exchange(&server, sent).await), [LARGE]);
    // It need not send what is refused.
    let asked = post("/tokenize", "content-length: 70000\r\nexpect: 100-continue\r\n", "");
    assert_eq!(summary(&exchange(&server, asked).await), [LARGE]);
    check(&server, "large bodies").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_hide_no_others() {
    let server = start(Limits::default()).await;
    let hidden = get("/v1/models");
    let body = format!("0\r\n\r\n{hidden}");
    for (what, headers) in [
        ("the length first", format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", body.len())),
        ("the encoding first", format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", body.len())),
        ("a length of the body", "content-length: 5\r\ntransfer-encoding: chunked\r\n".to_owned()),
    ] {
        // Whatever a proxy took for the body, nothing of it is taken for a request.
        let answers = summary(&exchange(&server, post("/tokenize", &headers, &body)).await);
        let expected = "400 {\"error\":{\"message\":\"the body is no JSON: EOF while parsing a value at line 1 column 0\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}";
        assert_eq!(answers, [expected], "{what}");
        check(&server, what).await;
    }
    // Nor of a body that is not read.
    let unread = format!(
        "GET /health/live HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{hidden}",
        hidden.len()
    );
    let mut stream = connect(&server).await;
    stream.write_all(unread.as_bytes()).await.unwrap();
    assert_eq!(summary(&answer(&mut stream).await), [LIVE]);
    drop(stream);
    check(&server, "a body that is not read").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() {
    let server = start(Limits::default()).await;
    let ask = |text: &str, headers: &str| {
        let body = format!("{{\"prompt\": \"{text}\", \"temperature\": 0, \"max_tokens\": 1}}");
        post("/v1/completions", &format!("content-length: {}\r\n{headers}", body.len()), &body)
    };
    let mut sent: String = ('a'..'q').map(|letter| ask(&letter.to_string(), "")).collect();
    sent += &ask("q", "connection: close\r\n");
    let answers = summary(&exchange(&server, sent).await);
    let texts: String = answers
        .iter()
        .map(|answer| {
            let answer: serde_json::Value =
                serde_json::from_str(answer.strip_prefix("200 ").unwrap()).unwrap();
            answer["choices"][0]["text"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(texts, "bcdefghijklmnopqr");
    check(&server, "pipelined requests").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_one_half_is_gone() {
    let server = start(Limits::default()).await;
    let body = "{\"prompt\": \"a\", \"max_tokens\": 400, \"ignore_eos\": true}";
    let request = post("/v1/completions", &format!("content-length: {}\r\n", body.len()), body);
    let mut stream = connect(&server).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
    check(&server, "half of a connection").await;
    // One that closes it in the middle of its request gets no answer either.
    for cut in [10, 100, request.len() - 5] {
        let mut stream = connect(&server).await;
        stream.write_all(&request.as_bytes()[..cut]).await.unwrap();
        stream.shutdown().await.unwrap();
        rest(&mut stream).await;
        check(&server, "half of a request").await;
    }
}
