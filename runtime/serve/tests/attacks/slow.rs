//! Clients that take their time.

use std::time::Duration;

use mlxcel_serve::Limits;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
    time::sleep,
};

use crate::wire::{answer, check, connect, exchange, get, post, rest, start, summary};

/// A time that passes soon.
const SOON: Duration = Duration::from_millis(500);

/// A time that does not pass.
const NEVER: Duration = Duration::from_secs(3600);

/// Limits of which none is reached.
const PATIENT: Limits = Limits {
    max_body: 1 << 20,
    max_connections: 1000,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    write: NEVER,
    request: None,
};

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_trickle() {
    let server = start(Limits { head: SOON, ..PATIENT }).await;
    // Nothing at all, a part, and a part that grows.
    assert_eq!(exchange(&server, "").await, "");
    assert_eq!(exchange(&server, "GET /health/live HTTP/1.1\r\nhost").await, "");
    let (mut reader, mut writer) = connect(&server).await.into_split();
    let written = tokio::spawn(async move {
        for byte in get("/health/live").bytes().cycle() {
            if writer.write_all(&[byte.max(b'a')]).await.is_err() {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    });
    let mut text = Vec::new();
    _ = reader.read_to_end(&mut text).await;
    assert_eq!(text, b"");
    written.await.unwrap();
    // The second request of a connection, too.
    let mut stream = connect(&server).await;
    let live = get("/health/live").replace("close", "keep-alive");
    stream.write_all(live.as_bytes()).await.unwrap();
    answer(&mut stream).await;
    stream.write_all(b"GET").await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
    check(&server, "heads that trickle").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_trickle() {
    let server = start(Limits { body: SOON, ..PATIENT }).await;
    let expected = "408 {\"error\":{\"message\":\"the body took longer than 0.5 s, expected all of it by then\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"body_timeout\"}}";
    let heads = ["content-length: 5000\r\n", "transfer-encoding: chunked\r\n"];
    for head in heads.map(|headers| post("/v1/chat/completions", headers, "")) {
        assert_eq!(summary(&exchange(&server, &head).await), [expected]);
        let (mut reader, mut writer) = connect(&server).await.into_split();
        writer.write_all(head.as_bytes()).await.unwrap();
        let written = tokio::spawn(async move {
            while writer.write_all(b"1\r\n \r\n").await.is_ok() {
                sleep(Duration::from_millis(20)).await;
            }
        });
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(summary(&text), [expected]);
        drop(reader);
        written.await.unwrap();
        check(&server, "bodies that trickle").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_lie_idle() {
    let server = start(Limits { idle: SOON, ..PATIENT }).await;
    let mut stream = connect(&server).await;
    let live = get("/health/live").replace("close", "keep-alive");
    for _ in 0..3 {
        stream.write_all(live.as_bytes()).await.unwrap();
        assert_eq!(summary(&answer(&mut stream).await), ["200 {\"status\":\"ok\"}"]);
    }
    assert_eq!(rest(&mut stream).await, "");
    check(&server, "idle connections").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read() {
    let server = start(Limits { write: SOON, ..PATIENT }).await;
    let live = get("/v1/models").replace("close", "keep-alive").repeat(100);
    let mut stream = connect(&server).await;
    // The server reads no more requests when it cannot send answers, and then it is over.
    while stream.write_all(live.as_bytes()).await.is_ok() {}
    check(&server, "answers that nobody reads").await;

    let body = "{\"prompt\": \"a\", \"max_tokens\": 500, \"ignore_eos\": true, \"n\": 8, \"logprobs\": 5, \"stream\": true}";
    let request = post("/v1/completions", &format!("content-length: {}\r\n", body.len()), body);
    let mut unread = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&server).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        // The queue has room for one at a time.
        server.until_idle().await;
        unread.push(stream);
    }
    check(&server, "streams that nobody reads").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_are_served() {
    let server = start(Limits { max_connections: 2, head: SOON, ..PATIENT }).await;
    // Those that say nothing hold the places of others, for a while.
    let mut clients = JoinSet::new();
    for index in 0..20 {
        let mut stream = connect(&server).await;
        clients.spawn(async move {
            if index % 2 == 1 {
                stream.write_all(get("/health/live").as_bytes()).await.unwrap();
            }
            rest(&mut stream).await
        });
    }
    let answers = clients.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 200")).count(), 10);
    assert_eq!(answers.iter().filter(|answer| answer.is_empty()).count(), 10);
    check(&server, "a flood of connections").await;
}
