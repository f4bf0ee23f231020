//! The server over a scripted model, as a client sees it.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod access;
mod embeddings;
mod log;
mod observe;
mod pages;
mod receipts;
mod reload;
mod scripted;

use std::time::Duration;

use mlxcel_serve::{Limits, Settings};
use reqwest::{Client, StatusCode};
use scripted::{MAX_BODY, Server, Speed, until};
use serde_json::{Value, json};

/// Returns the data of a stream's events.
fn events(body: &str) -> Vec<&str> {
    body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect()
}

fn chat(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }], "temperature": 0, "max_tokens": 4 })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_answered_whole_and_as_a_stream() {
    let server = Server::start(Speed::Fast).await;
    let whole = server.ask("/v1/chat/completions", &chat("ab")).await;
    // The model counts up from the last character of the prompt, which is the template's.
    let expected = json!({
        "id": whole["id"], "object": "chat.completion", "created": whole["created"], "model": "scripted",
        "system_fingerprint": whole["system_fingerprint"],
        "choices": [{
            "index": 0, "logprobs": null, "finish_reason": "length",
            "message": { "role": "assistant", "content": ";<=>", "refusal": null },
        }],
        "usage": {
            "prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8,
            "prompt_tokens_details": { "cached_tokens": 0 },
        },
    });
    assert_eq!(whole, expected);
    assert!(whole["id"].as_str().unwrap().starts_with("chatcmpl-"));

    let mut body = chat("ab");
    body["stream"] = true.into();
    body["stream_options"] = json!({ "include_usage": true });
    let (status, text) = server.post("/v1/chat/completions", &body).await;
    assert_eq!(status, StatusCode::OK);
    let events = events(&text);
    let (last, chunks) = events.split_last().unwrap();
    assert_eq!(*last, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect();
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == chunks[0]["id"])
    );
    let deltas: Vec<_> = chunks.iter().map(|chunk| chunk["choices"][0]["delta"].clone()).collect();
    assert_eq!(deltas[0], json!({ "role": "assistant", "content": "", "refusal": null }));
    let texts: String = deltas.iter().filter_map(|delta| delta["content"].as_str()).collect();
    assert_eq!(texts, ";<=>");
    let (usage, rest) = chunks.split_last().unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(8)));
    assert!(rest.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(rest.last().unwrap()["choices"][0]["finish_reason"], "length");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_prompts_and_answers_have_indices() {
    let server = Server::start(Speed::Fast).await;
    let body = json!({ "prompt": ["a", "k"], "n": 2, "temperature": 0, "max_tokens": 3, "logprobs": 1 });
    let whole = server.ask("/v1/completions", &body).await;
    let texts: Vec<_> =
        whole["choices"].as_array().unwrap().iter().map(|choice| choice["text"].clone()).collect();
    assert_eq!(texts, ["bcd", "bcd", "lmn", "lmn"]);
    assert_eq!(whole["usage"]["prompt_tokens"], 4);
    let logprobs = &whole["choices"][3]["logprobs"];
    assert_eq!(logprobs["tokens"], json!(["l", "m", "n"]));
    assert_eq!(logprobs["text_offset"], json!([0, 1, 2]));
    assert!(logprobs["top_logprobs"][0]["l"].as_f64().unwrap() > -0.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_biases_and_ends() {
    let server = Server::start(Speed::Fast).await;
    let ask = async |more: Value| {
        let mut body = json!({ "prompt": "a", "temperature": 0, "max_tokens": 6 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let choice = server.ask("/v1/completions", &body).await["choices"][0].clone();
        (choice["text"].as_str().unwrap().to_owned(), choice["finish_reason"].as_str().unwrap().to_owned())
    };
    assert_eq!(ask(json!({ "stop": "de" })).await, ("bc".into(), "stop".into()));
    assert_eq!(ask(json!({ "stop": ["x", "c"] })).await, ("b".into(), "stop".into()));
    // z ends an answer.
    assert_eq!(ask(json!({ "prompt": "w" })).await, ("xy".into(), "stop".into()));
    assert_eq!(ask(json!({ "prompt": "w", "ignore_eos": true })).await, ("xyz{|}".into(), "length".into()));
    assert_eq!(ask(json!({ "logit_bias": { "110": 100 } })).await, ("nnnnnn".into(), "length".into()));
    assert_eq!(
        ask(json!({ "seed": 5, "temperature": 1.5 })).await,
        ask(json!({ "seed": 5, "temperature": 1.5 })).await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_calls_functions() {
    let answer = "<think>Which?</think>\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    let server = Server::answering(answer).await;
    let tool =
        json!({ "type": "function", "function": { "name": "weather", "parameters": { "type": "object" } } });
    let mut body =
        json!({ "messages": [{ "role": "user", "content": "a" }], "temperature": 0, "tools": [tool] });
    let whole = server.ask("/v1/chat/completions", &body).await;
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{whole}");
    let call = choice["message"]["tool_calls"][0].clone();
    let expected = json!({
        "role": "assistant", "content": null, "refusal": null, "reasoning_content": "Which?",
        "tool_calls": [{
            "id": call["id"], "type": "function",
            "function": { "name": "weather", "arguments": "{\"city\": \"Rome\"}" },
        }],
    });
    assert_eq!(choice["message"], expected);

    // The call and its result go back as they came.
    let mut more = body.clone();
    let result = json!({ "role": "tool", "tool_call_id": call["id"], "content": "sunny" });
    more["messages"].as_array_mut().unwrap().extend([choice["message"].clone(), result]);
    server.ask("/v1/chat/completions", &more).await;
    more["messages"][1]["tool_calls"][0]["function"]["arguments"] = "{".into();
    let (status, text) = server.post("/v1/chat/completions", &more).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("messages[1].tool_calls[0].function.arguments"), "{text}");

    body["stream"] = true.into();
    let (_, text) = server.post("/v1/chat/completions", &body).await;
    let (mut name, mut arguments, mut finish) = (String::new(), String::new(), Value::Null);
    for chunk in events(&text).into_iter().filter(|event| *event != "[DONE]") {
        let chunk: Value = serde_json::from_str(chunk).unwrap();
        finish = chunk["choices"][0]["finish_reason"].clone();
        for call in chunk["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            assert_eq!(call["index"], 0);
            name += call["function"]["name"].as_str().unwrap_or_default();
            arguments += call["function"]["arguments"].as_str().unwrap();
        }
    }
    assert_eq!((name.as_str(), arguments.as_str()), ("weather", "{\"city\": \"Rome\"}"));
    assert_eq!(finish, "tool_calls");

    let plain = Server::start(Speed::Fast).await;
    let (status, text) = plain
        .post("/v1/chat/completions", &json!({ "messages": body["messages"], "tools": body["tools"] }))
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("has no tools"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_what_the_request_allows() {
    let call = "\n<tool_call>\n{\"name\": \"sunrise\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    let server = Server::answering(String::leak(call.repeat(2))).await;
    let tool = |parameters: Value, is_strict: bool| {
        let function = json!({ "name": "weather", "parameters": parameters, "strict": is_strict });
        json!({ "type": "function", "function": function })
    };
    let city = json!({ "type": "object", "properties": { "city": { "enum": ["Rome", "Paris"] } } });
    let mut body = json!({
        "messages": [{ "role": "user", "content": "a" }], "temperature": 0, "tools": [tool(city, true)],
    });
    let path = "/v1/chat/completions";
    // What the model would call is not there, and what is there has a name of the same length.
    for (choice, is_parallel, count) in [
        (json!("auto"), true, 2),
        (json!("auto"), false, 1),
        (json!("required"), true, 2),
        (json!({ "type": "function", "function": { "name": "weather" } }), true, 1),
    ] {
        body["tool_choice"] = choice.clone();
        body["parallel_tool_calls"] = is_parallel.into();
        let whole = server.ask(path, &body).await;
        let calls = whole["choices"][0]["message"]["tool_calls"].as_array().unwrap();
        let named = |call: &Value| call["function"]["name"] == "weather";
        assert!(calls.len() == count && calls.iter().all(named), "{choice} {is_parallel}: {whole}");
        assert_eq!(calls[0]["function"]["arguments"], "{\"city\": \"Rome\"}");
    }
    body["tool_choice"] = "none".into();
    body.as_object_mut().unwrap().remove("parallel_tool_calls");
    let whole = server.ask(path, &body).await;
    assert!(whole["choices"][0]["message"]["content"].as_str().unwrap().contains("sunrise"), "{whole}");

    body["tool_choice"] = "auto".into();
    let odd = json!({ "type": "object", "not": {} });
    body["tools"] = json!([tool(odd.clone(), false)]);
    server.ask(path, &body).await;
    body["tools"] = json!([tool(odd, true)]);
    let (status, text) = server.post(path, &body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("the grammar cannot be used"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_their_format() {
    let server = Server::start(Speed::Fast).await;
    let ask = async |path: &str, more: Value| {
        let mut body = if path.contains("chat") { chat("a") } else { json!({ "prompt": "a" }) };
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, text) = server.post(path, &body).await;
        (status.as_u16(), serde_json::from_str::<Value>(&text).unwrap())
    };
    let schema = json!({
        "type": "object",
        "properties": { "color": { "enum": ["red", "blue"] }, "counts": {
            "type": "array", "items": { "type": "integer", "minimum": 1, "maximum": 20 }, "maxItems": 3 } },
        "required": ["color", "counts"],
        "additionalProperties": false,
    });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "thing", "schema": schema } });
    for seed in 0..20 {
        let more = json!({ "response_format": format, "max_tokens": 200, "seed": seed, "temperature": 2 });
        let (_, answer) = ask("/v1/chat/completions", more).await;
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{answer}");
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(["red", "blue"].contains(&value["color"].as_str().unwrap()), "{value}");
        assert!(
            value["counts"]
                .as_array()
                .unwrap()
                .iter()
                .all(|count| (1..=20).contains(&count.as_i64().unwrap()))
        );
    }
    let (_, answer) = ask("/v1/completions", json!({ "regex": "[0-9]{2} [x-z]", "n": 3 })).await;
    for choice in answer["choices"].as_array().unwrap() {
        let text = choice["text"].as_str().unwrap().as_bytes();
        assert!(matches!(text, [b'0'..=b'9', b'0'..=b'9', b' ', b'x'..=b'z']), "{answer}");
    }
    let grammar = "start: \" \" (\"b\" | \"q\") end\nend: \"!\"";
    let (_, answer) = ask("/v1/chat/completions", json!({ "grammar": grammar, "temperature": 0 })).await;
    assert_eq!(answer["choices"][0]["message"]["content"], " b!");
    let refused = async |more: Value| {
        let (status, answer) = ask("/v1/completions", more).await;
        format!("{status} {}", answer["error"]["message"].as_str().unwrap())
    };
    assert_eq!(
        refused(json!({ "regex": "(" })).await,
        "400 the grammar cannot be used: at 1(8): invalid regex \"(\" (in regex): regex parse error: unclosed group"
    );
    assert_eq!(
        refused(json!({ "regex": "a", "ignore_eos": true })).await,
        "400 ignore_eos is true, expected false for an answer that a format ends"
    );
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_texts_and_models() {
    let server = Server::start(Speed::Fast).await;
    let tokens = server.ask("/tokenize", &json!({ "content": "ab", "add_special": true })).await;
    assert_eq!(tokens, json!({ "tokens": [256, 97, 98] }));
    assert_eq!(server.ask("/tokenize", &json!({ "content": "ab" })).await, json!({ "tokens": [97, 98] }));
    assert_eq!(server.ask("/detokenize", &json!({ "tokens": [97, 98] })).await, json!({ "content": "ab" }));
    let rendered = server.ask("/apply-template", &chat("a<s>")).await;
    assert_eq!(rendered["prompt"], "<s>a<s>:");
    // What the client wrote is text, and what the template wrote is a token.
    assert_eq!(rendered["tokens"], json!([256, 97, 60, 115, 62, 58]));
    let models = server.get("/v1/models").await;
    assert_eq!((&models["object"], &models["data"][0]["id"]), (&json!("list"), &json!("scripted")));
    let expected = json!({
        "id": "scripted", "object": "model", "created": models["data"][0]["created"], "owned_by": "mlxcel",
        "chat_template": true,
        "digest": models["data"][0]["digest"], "context": 512, "target": "script", "device": "scripted",
        "quantization": "q4", "signature": { "key": "0123456789ABCDEF", "verified": true },
        "task": "generation",
    });
    assert!(models["data"][0]["digest"].as_str().unwrap().starts_with("blake3:"), "{models}");
    assert_eq!(server.get("/v1/models/scripted").await, expected);
    assert_eq!(server.get("/health/ready").await, json!({ "status": "ok" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_ends_is_no_answer() {
    let server = Server::panicking().await;
    let path = "/v1/chat/completions";
    let mut body = chat("a");
    body["temperature"] = 0.into();
    body["stream"] = true.into();
    let (status, text) = server.post(path, &body).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("the engine's thread has ended") && !text.contains("[DONE]"), "{text}");
    for stream in [true, false] {
        body["stream"] = stream.into();
        let (status, text) = server.post(path, &body).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
    }
    let ready = Client::new().get(server.url("/health/ready")).send().await.unwrap();
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        ready.json::<Value>().await.unwrap(),
        json!({ "status": "unavailable", "stopped": ["scripted"] })
    );
    assert_eq!(server.get("/health/live").await, json!({ "status": "ok" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_openais_form() {
    let server = Server::start(Speed::Fast).await;
    let refused = async |path: &str, body: Value| {
        let (status, text) = server.post(path, &body).await;
        let error: Value = serde_json::from_str(&text).unwrap();
        let field = |name: &str| error["error"][name].as_str().unwrap_or("null").to_owned();
        format!(
            "{} {} {} {}: {}",
            status.as_u16(),
            field("type"),
            field("code"),
            field("param"),
            field("message")
        )
    };
    let mut other = chat("a");
    other["model"] = "gpt-4".into();
    insta::assert_snapshot!(
        [
            refused("/v1/chat/completions", json!([])).await,
            refused("/v1/chat/completions", json!({ "messages": "a" })).await,
            refused("/v1/chat/completions", other).await,
            refused("/v1/completions", json!({ "prompt": "a", "max_tokens": 600 })).await,
            refused("/v1/completions", json!({ "prompt": "a".repeat(600) })).await,
            refused("/v1/completions", json!({ "prompt": [200_000] })).await,
            refused("/v1/completions", json!({ "prompt": [] })).await,
            refused("/v1/completions", json!({ "prompt": "a", "suffix": "b" })).await,
            refused("/v1/completions", json!({ "prompt": "a", "logit_bias": { "9999": 1 } })).await,
            refused("/v1/nothing", json!({})).await,
            refused("/v1/models", json!({})).await,
        ]
        .join("\n"),
        @r#"
        400 invalid_request_error null null: the body is no JSON object, expected one
        400 invalid_request_error null messages: messages: invalid type: string "a", expected a sequence
        404 invalid_request_error model_not_found model: the model `gpt-4` is not served, expected one of scripted
        400 invalid_request_error context_length_exceeded null: the prompt has 2 tokens and the answer may have 600, expected at most 512 together
        400 invalid_request_error context_length_exceeded null: 601 tokens, expected at most 512, the size of the context
        400 invalid_request_error null null: token 1 of the prompt has the id 200000, expected 0 to 256
        400 invalid_request_error null prompt: found 0 prompts, expected 1 to 128
        400 invalid_request_error null suffix: suffix is "b", but only "" is supported
        400 invalid_request_error null null: a logit bias is for the token 9999, expected 0 to 256
        404 invalid_request_error null null: found no POST /v1/nothing
        405 invalid_request_error null null: found no POST /v1/models
        "#
    );
    let client = Client::new();
    let of = |content: &'static str, body: &'static [u8]| {
        let request = client.post(server.url("/v1/completions")).header("content-type", content);
        async move { request.body(body).send().await.unwrap().status().as_u16() }
    };
    assert_eq!(of("text/plain", b"{}").await, 415);
    assert_eq!(of("application/json; charset=utf-8", b"{\"prompt\": ").await, 400);
    assert_eq!(of("application/json", b"\xff\xfe").await, 400);
    let large = json!({ "prompt": "a".repeat(MAX_BODY) });
    let expected =
        "413 invalid_request_error null null: the body is larger than 65536 bytes, expected at most that";
    assert_eq!(refused("/v1/completions", large).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_checked() {
    let server = Server::with_keys(&["one", "two"]).await;
    let get = async |key: Option<&str>| {
        let request = Client::new().get(server.url("/v1/models"));
        let request = match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!([get(None).await, get(Some("on")).await, get(Some("two")).await], [401, 401, 200]);
    let live = Client::new().get(server.url("/health/live")).send().await.unwrap();
    assert_eq!(live.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn administration_takes_a_key_of_its_own() {
    let get = async |server: &Server, path: &str, key: &str| {
        let request = Client::new().get(server.url(path)).header("authorization", key);
        request.send().await.unwrap().status().as_u16()
    };
    let server = Server::with_keys(&["one"]).await;
    assert_eq!(get(&server, "/admin/none", "Bearer one").await, 403, "there is no admin key");
    let settings =
        Settings { api_keys: vec!["one".into()], admin_key: Some("root".into()), ..Settings::default() };
    let server = Server::with(Speed::Fast, settings).await;
    assert_eq!(get(&server, "/admin/none", "Bearer one").await, 401);
    assert_eq!(get(&server, "/admin/none", "Basic root").await, 401);
    assert_eq!(get(&server, "/admin/none", "bearer root").await, 404);
    assert_eq!(get(&server, "/v1/models", "Bearer root").await, 401, "it is no client's key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_frees_its_pages() {
    let server = Server::start(Speed::Slow).await;
    let body = json!({ "prompt": "a", "max_tokens": 400, "stream": true, "ignore_eos": true });
    for body in [body.clone(), json!({ "prompt": "a", "max_tokens": 400, "ignore_eos": true })] {
        server.leave(&body).await;
        server.until_idle().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_asks_to_come_again() {
    let server = Server::start(Speed::Slow).await;
    let limit = server.engine().queue_limit();
    let body = |n: usize| json!({ "prompt": "a", "max_tokens": 400, "n": n, "ignore_eos": true });
    let running = server.fill(&body(limit)).await;
    let response = Client::new().post(server.url("/v1/completions")).json(&body(limit)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "1");
    drop(running);
    server.until_idle().await;
    // What can never be taken is not to be sent again.
    let error = server.post("/v1/completions", &body(limit + 1)).await;
    let expected =
        format!("the request has {} answers, expected at most {limit}, as many as may wait", limit + 1);
    assert_eq!(error.0, StatusCode::BAD_REQUEST);
    assert_eq!(serde_json::from_str::<Value>(&error.1).unwrap()["error"]["message"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_take_too_long_end() {
    let limits = Limits { request: Some(Duration::from_millis(500)), ..Limits::default() };
    let server = Server::with(Speed::Slow, Settings { limits, ..Settings::default() }).await;
    let mut body = json!({ "prompt": "a", "max_tokens": 400, "ignore_eos": true });
    let response = Client::new().post(server.url("/v1/completions")).json(&body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(response.headers()["x-should-retry"], "false");
    let error = json!({
        "message": "the request took longer than 0.5 s, the most that the server gives it",
        "type": "server_error", "param": null, "code": "request_timeout",
    });
    assert_eq!(response.json::<Value>().await.unwrap()["error"], error);
    server.until_idle().await;
    body["stream"] = true.into();
    let (status, text) = server.post("/v1/completions", &body).await;
    assert_eq!(status, StatusCode::OK);
    let last = events(&text).pop().map(|last| serde_json::from_str::<Value>(last).unwrap()).unwrap();
    assert_eq!(last["error"], error);
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_answers_at_the_deadline() {
    let mut server = Server::start(Speed::Slow).await;
    let send = |body: Value| Client::new().post(server.url("/v1/completions")).json(&body).send();
    // Takes the most time that leaves a page for the other one.
    let long = send(json!({ "prompt": "a", "max_tokens": 440, "stream": true, "ignore_eos": true }));
    let short = send(json!({ "prompt": "a", "max_tokens": 2, "temperature": 0 }));
    let response = long.await.unwrap();
    let short = tokio::spawn(short);
    // Each prompt has two tokens.
    let read = || server.engine().usage().work.prompt_tokens;
    until(async || if read() >= 4 { Ok(()) } else { Err(format!("read {} tokens of prompts", read())) })
        .await;
    server.stop();
    // What can end in time does, and the rest is told why it does not.
    assert_eq!(short.await.unwrap().unwrap().status(), 200);
    let text = response.text().await.unwrap();
    let last = events(&text).pop().map(|last| serde_json::from_str::<Value>(last).unwrap()).unwrap();
    assert_eq!(last["error"]["message"], "the server is shutting down");
    server.ended().await;
}
