//! Ids of requests, and lines about them.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, OnceLock},
};

use mlxcel_serve::Settings;
use reqwest::Client;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::scripted::{Server, Speed, until};

/// Lines of all servers of this process, whose requests have ids of their own.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Lines {
    /// Returns the lines of the process. A subscriber of one thread would miss those that another thread met first.
    fn start() -> &'static Self {
        static LINES: OnceLock<Lines> = OnceLock::new();
        LINES.get_or_init(|| {
            let lines = Self::default();
            let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(lines.clone());
            subscriber.init();
            lines
        })
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Waits for the line of a request, and returns it without what differs each time.
    async fn of(&self, id: &str) -> Value {
        let mut line = until(async || {
            let text = self.text();
            let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let line = lines.find(|line| line["request_id"] == id && line.get("method").is_some());
            line.ok_or_else(|| format!("found no line of {id} in {text}"))
        })
        .await;
        assert!(line["seconds"].as_f64().unwrap() > 0.0);
        for name in ["seconds", "queued_seconds", "first_token_seconds", "timestamp"] {
            line.as_object_mut().unwrap().remove(name);
        }
        line
    }
}

/// Asks with an id, and returns the id of the answer.
async fn ask(server: &Server, path: &str, id: &str, body: &Value) -> String {
    let request = Client::new().post(server.url(path)).header("x-request-id", id).json(body);
    let response = request.send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    response.bytes().await.unwrap();
    id
}

#[tokio::test]
async fn requests_have_ids() {
    let server = Server::start(Speed::Fast).await;
    let body = json!({ "prompt": "a" });
    let of = async |id: &str| ask(&server, "/v1/completions", id, &body).await;
    assert_eq!(of("a-B_3.4:5/6+7=").await, "a-B_3.4:5/6+7=");
    let long = "a".repeat(129);
    for id in ["", "a b", "{\"a\"}", &long] {
        let made = of(id).await;
        assert!(made.starts_with("req-") && made.len() == 36, "{id} {made}");
    }
    assert_ne!(of("").await, of("").await);
    // Refusals have one, too.
    assert_eq!(ask(&server, "/v1/nothing", "x", &body).await, "x");
}

#[tokio::test]
async fn each_request_has_a_line() {
    let lines = Lines::start();
    let server = Server::start(Speed::Fast).await;
    let mut body =
        json!({ "messages": [{ "role": "user", "content": "secret" }], "max_tokens": 3, "temperature": 0 });
    for is_streamed in [false, true] {
        body["stream"] = is_streamed.into();
        let id = format!("chat-{is_streamed}");
        ask(&server, "/v1/chat/completions", &id, &body).await;
        let line = lines.of(&id).await;
        let expected = json!({
            "level": "INFO", "target": "mlxcel_serve::request", "request_id": id,
            "method": "POST", "path": "/v1/chat/completions", "status": 200,
            "model": "scripted", "answer": line["answer"],
            "prompt_tokens": 8, "generated_tokens": 3, "finish_reason": "length",
        });
        assert_eq!(line, expected);
    }
    ask(&server, "/v1/chat/completions", "refused", &json!({ "messages": "secret" })).await;
    let expected = json!({
        "level": "INFO", "target": "mlxcel_serve::request", "request_id": "refused",
        "method": "POST", "path": "/v1/chat/completions", "status": 400,
        "error": "invalid_request_error",
    });
    assert_eq!(lines.of("refused").await, expected);
    // What asks for the server's health does so all the time.
    let probe = Client::new().get(server.url("/health/ready")).header("x-request-id", "probe");
    probe.send().await.unwrap();
    ask(&server, "/health/ready", "wrong", &json!({})).await;
    assert_eq!(lines.of("wrong").await["status"], 405);
    let text = lines.text();
    assert!(!text.contains("secret") && !text.contains("\"probe\""), "{text}");
}

#[tokio::test]
async fn a_client_that_goes_has_a_line() {
    let lines = Lines::start();
    let server = Server::start(Speed::Slow).await;
    for stream in [true, false] {
        let body = json!({ "prompt": "a", "max_tokens": 400, "ignore_eos": true, "stream": stream });
        let id = format!("gone-{stream}");
        let is_running =
            until(async || (server.engine().usage().running > 0).then_some(()).ok_or("nothing runs"));
        tokio::select! {
            _ = ask(&server, "/v1/completions", &id, &body) => panic!("the client did not go"),
            () = is_running => {}
        }
        let line = lines.of(&id).await;
        assert_eq!((&line["client_gone"], &line["status"]), (&json!(true), &Value::Null));
        assert_eq!(line["finish_reason"], "cancelled");
        server.until_idle().await;
    }
}

#[tokio::test]
async fn prompts_are_written_if_they_are_asked_for() {
    let lines = Lines::start();
    let server = Server::with(Speed::Fast, Settings { log_prompts: true, ..Settings::default() }).await;
    ask(&server, "/v1/completions", "told", &json!({ "prompt": "known\n" })).await;
    lines.of("told").await;
    let text = lines.text();
    let mut found = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let body = found.find(|line| line["request_id"] == "told" && line.get("body").is_some()).unwrap();
    assert_eq!(body["body"], "{\"prompt\":\"known\\n\"}");
}
