//! What the server tells of itself.

use std::{collections::BTreeMap, time::Instant};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::{
    chat,
    scripted::{Server, Speed, until},
};

/// Returns the lines of `/metrics` that are not 0, without those of times and buckets.
async fn counts(server: &Server) -> BTreeMap<String, f64> {
    let response = Client::new().get(server.url("/metrics")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains("_seconds_"));
    let lines = lines.map(|line| line.rsplit_once(' ').unwrap());
    let lines = lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap()));
    lines.filter(|(name, value)| *value != 0.0 && !name.contains("/metrics")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_how_they_end() {
    let server = Server::start(Speed::Fast).await;
    let path = "/v1/completions";
    let body = json!({ "prompt": "abc", "temperature": 0, "max_tokens": 6, "n": 2, "stop": "fg" });
    server.ask(path, &body).await;
    let mut streamed = chat("ab");
    streamed["stream"] = true.into();
    server.post("/v1/chat/completions", &streamed).await;
    server.post(path, &json!({ "prompt": "a", "max_tokens": 600 })).await;
    server.post(path, &json!({ "prompt": "a", "model": "other" })).await;
    server.post("/v1/nothing/at/all", &json!({})).await;
    server.until_idle().await;
    let counts = counts(&server).await;
    // How answers share steps, and when one ends at its stop text, is up to the engine.
    let is_fixed = |name: &str| !name.contains("engine_step") && !name.contains("generation_tokens");
    let lines: Vec<_> = counts
        .iter()
        .filter(|(name, _)| is_fixed(name))
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    mlxcel_answers_total{model_name="scripted",endpoint="/v1/chat/completions",finished_reason="length"} 1
    mlxcel_answers_total{model_name="scripted",endpoint="/v1/completions",finished_reason="stop"} 2
    mlxcel_build_info{version="0.1.0"} 1
    mlxcel_kv_cache_pages{model_name="scripted",window="all",state="free"} 8
    mlxcel_prompt_tokens_total{model_name="scripted"} 12
    mlxcel_queue_limit{model_name="scripted"} 8
    mlxcel_requests_total{model_name="",endpoint="",status="404"} 1
    mlxcel_requests_total{model_name="",endpoint="/v1/completions",status="404"} 1
    mlxcel_requests_total{model_name="scripted",endpoint="/v1/chat/completions",status="200"} 1
    mlxcel_requests_total{model_name="scripted",endpoint="/v1/completions",status="200"} 1
    mlxcel_requests_total{model_name="scripted",endpoint="/v1/completions",status="400"} 1
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_and_lost_clients_are_counted() {
    let server = Server::start(Speed::Slow).await;
    let path = "/v1/completions";
    let mut body = json!({ "prompt": "a", "max_tokens": 400, "n": 8, "ignore_eos": true });
    let running = server.fill(&body).await;
    let lost = running.len() + 2;
    assert_eq!(server.post(path, &body).await.0, StatusCode::TOO_MANY_REQUESTS);
    drop(running);
    body["n"] = 1.into();
    for stream in [true, false] {
        server.until_idle().await;
        body["stream"] = stream.into();
        server.leave(&body).await;
    }
    server.until_idle().await;
    let status = |status: u16| {
        format!("mlxcel_requests_total{{model_name=\"scripted\",endpoint=\"{path}\",status=\"{status}\"}}")
    };
    // The record of a request is dropped after its pages are free.
    let counts = until(async || {
        let counts = counts(&server).await;
        let has_all = counts.get(&status(499)) == Some(&(lost as f64));
        if has_all { Ok(counts) } else { Err(format!("expected {lost} clients that went: {counts:?}")) }
    })
    .await;
    assert_eq!(counts[&status(429)], 1.0);
    assert!(!counts.contains_key(&status(200)), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_shows_models_and_the_slowest_requests() {
    let start = Instant::now();
    let server = Server::start(Speed::Fast).await;
    server.ask("/v1/chat/completions", &chat("ab")).await;
    server.until_idle().await;
    let status = server.get("/status.json").await;
    let (model, slow) = (&status["models"][0], &status["slowest"][0]);
    let is_past = |value: &Value| value.as_f64().unwrap() > 0.0;
    assert!(is_past(&status["uptime_seconds"]) && is_past(&slow["at"]) && is_past(&slow["seconds"]));
    assert!(is_past(&slow["queued_seconds"]) && is_past(&slow["first_token_seconds"]));
    // There is one at the end of each interval: none, unless this took longer than one.
    let points = model["history"]["points"].as_array().unwrap();
    assert!(points.len() as u64 <= start.elapsed().as_secs() / 5, "{points:?}");
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"), "uptime_seconds": status["uptime_seconds"], "draining": false,
        "models": [{
            "name": "scripted", "digest": model["digest"], "target": "script", "device": "scripted",
            "context": 512, "queue": { "waiting": 0, "limit": 8 }, "running": 0, "rows_per_step": model["rows_per_step"],
            "cache": [{ "window": null, "pages": 8, "free": 8, "cached": 0, "in_use": 0, "page_bytes": 1 }],
            "totals": { "requests": 1, "prompt_tokens": 4, "cached_tokens": 0, "generated_tokens": 4, "steps": 4, "rows": 7 },
            "history": { "interval_seconds": 5, "points": points },
        }],
        "slowest": [{
            "id": slow["id"], "model": "scripted", "endpoint": "/v1/chat/completions", "at": slow["at"],
            "seconds": slow["seconds"], "queued_seconds": slow["queued_seconds"],
            "first_token_seconds": slow["first_token_seconds"], "prompt_tokens": 4, "generated_tokens": 4,
            "finish_reason": "length",
        }],
    });
    assert_eq!(status, expected);
    assert!(slow["id"].as_str().unwrap().starts_with("chatcmpl-"));
}
