//! What requests are answered with.

use serde_json::{Value, json};

use super::schema::{about, choice, count, list, named, nullable, object, one_of, text, token};

/// Why an answer ends, by OpenAI's names.
const FINISH: [&str; 3] = ["stop", "length", "tool_calls"];

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("ChatCompletion", chat()),
        ("ChatCompletionChunk", chat_chunk()),
        ("Completion", completion()),
        ("CompletionChunk", completion_chunk()),
        ("Embeddings", embeddings()),
        (
            "Models",
            object(
                &["object", "data"],
                json!({ "object": { "const": "list" }, "data": list(named("Model")) }),
            ),
        ),
        ("Model", model()),
        ("Tokens", object(&["tokens"], json!({ "tokens": list(token()) }))),
        ("Text", object(&["content"], json!({ "content": text() }))),
        ("RenderedChat", object(&["prompt", "tokens"], json!({ "prompt": text(), "tokens": list(token()) }))),
        ("Health", object(&["status"], json!({ "status": { "const": "ok" } }))),
        ("Unavailable", object(&["status", "stopped"], json!({ "status": text(), "stopped": list(text()) }))),
        ("Reloaded", reloaded()),
        ("Status", status()),
        ("Receipt", about(json!({ "type": "object" }), "What `mlxcel-run --replay` reads.")),
        ("Usage", usage()),
        ("Call", call()),
        ("Logprobs", logprobs()),
        ("TextLogprobs", text_logprobs()),
        ("Error", error()),
    ]
}

fn number() -> Value {
    json!({ "type": "number" })
}

/// The object of an answer with choices.
fn envelope(name: &str, choice: Value, usage: Option<Value>) -> Value {
    let mut properties = json!({
        "id": text(),
        "object": { "const": name },
        "created": count(),
        "model": text(),
        "system_fingerprint": text(),
        "choices": list(choice),
    });
    // One answer has a receipt, several have a list.
    properties["receipt"] = named("Receipt");
    properties["receipts"] = list(named("Receipt"));
    let mut required = vec!["id", "object", "created", "model", "system_fingerprint", "choices"];
    match usage {
        Some(usage) => properties["usage"] = usage,
        None => {
            properties["usage"] = named("Usage");
            required.push("usage");
        }
    }
    object(&required, properties)
}

fn chat() -> Value {
    let message = object(
        &["role", "content", "refusal"],
        json!({
            "role": { "const": "assistant" },
            "content": nullable(text()),
            "refusal": { "type": "null" },
            "reasoning_content": text(),
            "tool_calls": list(named("Call")),
        }),
    );
    let choice = object(
        &["index", "message", "logprobs", "finish_reason"],
        json!({
            "index": count(),
            "message": message,
            "logprobs": nullable(named("Logprobs")),
            "finish_reason": choice(&FINISH),
        }),
    );
    envelope("chat.completion", choice, None)
}

fn chat_chunk() -> Value {
    let function = object(&["arguments"], json!({ "name": text(), "arguments": text() }));
    let call = object(
        &["index", "function"],
        json!({ "index": count(), "id": text(), "type": { "const": "function" }, "function": function }),
    );
    let delta = object(
        &[],
        json!({
            "role": { "const": "assistant" },
            "content": text(),
            "refusal": { "type": "null" },
            "reasoning_content": text(),
            "tool_calls": list(call),
        }),
    );
    let choice = object(
        &["index", "delta", "logprobs", "finish_reason"],
        json!({
            "index": count(),
            "delta": delta,
            "logprobs": nullable(named("Logprobs")),
            "finish_reason": nullable(choice(&FINISH)),
        }),
    );
    envelope("chat.completion.chunk", choice, Some(nullable(named("Usage"))))
}

fn text_choice(finish: Value) -> Value {
    object(
        &["index", "text", "logprobs", "finish_reason"],
        json!({
            "index": count(),
            "text": text(),
            "logprobs": nullable(named("TextLogprobs")),
            "finish_reason": finish,
        }),
    )
}

fn completion() -> Value {
    envelope("text_completion", text_choice(choice(&FINISH)), None)
}

fn completion_chunk() -> Value {
    let usage = Some(nullable(named("Usage")));
    envelope("text_completion", text_choice(nullable(choice(&FINISH))), usage)
}

fn embeddings() -> Value {
    let vector = one_of([
        list(number()),
        about(text(), "32-bit floats, the least significant byte first, in base64."),
    ]);
    let entry = object(
        &["object", "index", "embedding"],
        json!({ "object": { "const": "embedding" }, "index": count(), "embedding": vector }),
    );
    let usage = object(
        &["prompt_tokens", "total_tokens"],
        json!({ "prompt_tokens": count(), "total_tokens": count() }),
    );
    object(
        &["object", "data", "model", "usage"],
        json!({ "object": { "const": "list" }, "data": list(entry), "model": text(), "usage": usage }),
    )
}

fn model() -> Value {
    let key = about(text(), "The id of the key that the signature names.");
    let verified =
        about(json!({ "type": "boolean" }), "Whether it was verified with a key that the server requires.");
    let signature = object(&["key", "verified"], json!({ "key": key, "verified": verified }));
    object(
        &[
            "id",
            "object",
            "created",
            "owned_by",
            "chat_template",
            "digest",
            "context",
            "target",
            "device",
            "quantization",
            "signature",
            "task",
        ],
        json!({
            "id": text(),
            "object": { "const": "model" },
            "created": count(),
            "owned_by": text(),
            "chat_template": about(
                json!({ "type": "boolean" }),
                "Whether the model takes turns. Otherwise it only continues texts.",
            ),
            "digest": about(text(), "The digest of the bundle's manifest."),
            "context": about(count(), "Tokens of context."),
            "target": about(text(), "The target that the running code was compiled for."),
            "device": text(),
            "quantization": text(),
            "signature": nullable(signature),
            "task": choice(&["generation", "embedding"]),
        }),
    )
}

fn reloaded() -> Value {
    object(
        &["model", "changed", "digest", "previous_digest"],
        json!({
            "model": text(),
            "changed": { "type": "boolean" },
            "digest": text(),
            "previous_digest": text(),
        }),
    )
}

fn usage() -> Value {
    let details = object(&["cached_tokens"], json!({ "cached_tokens": count() }));
    object(
        &["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"],
        json!({
            "prompt_tokens": count(),
            "completion_tokens": count(),
            "total_tokens": count(),
            "prompt_tokens_details": details,
        }),
    )
}

fn call() -> Value {
    let arguments = about(text(), "A JSON object.");
    let function = object(&["name", "arguments"], json!({ "name": text(), "arguments": arguments }));
    object(
        &["id", "type", "function"],
        json!({ "id": text(), "type": { "const": "function" }, "function": function }),
    )
}

fn logprobs() -> Value {
    let entry = |top: Option<Value>| {
        let mut properties =
            json!({ "token": text(), "logprob": number(), "bytes": nullable(list(count())) });
        let mut required = vec!["token", "logprob", "bytes"];
        if let Some(top) = top {
            properties["top_logprobs"] = top;
            required.push("top_logprobs");
        }
        object(&required, properties)
    };
    object(
        &["content", "refusal"],
        json!({ "content": list(entry(Some(list(entry(None))))), "refusal": { "type": "null" } }),
    )
}

fn text_logprobs() -> Value {
    object(
        &["tokens", "token_logprobs", "top_logprobs", "text_offset"],
        json!({
            "tokens": list(text()),
            "token_logprobs": list(number()),
            "top_logprobs": list(json!({ "type": "object", "additionalProperties": number() })),
            "text_offset": list(count()),
        }),
    )
}

fn status() -> Value {
    let all = |properties: Value| {
        let names: Vec<String> =
            properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        object(&names.iter().map(String::as_str).collect::<Vec<_>>(), properties)
    };
    let point = all(json!({
        "at": number(),
        "prompt_tokens_per_second": number(),
        "generated_tokens_per_second": number(),
        "waiting": count(),
        "running": count(),
        "rows_per_step": nullable(number()),
        "cache_in_use": { "type": "number", "minimum": 0, "maximum": 1 },
    }));
    let pool = all(json!({
        "window": nullable(count()),
        "pages": count(),
        "free": count(),
        "cached": count(),
        "in_use": count(),
        "page_bytes": count(),
    }));
    let totals = all(json!({
        "requests": count(),
        "prompt_tokens": count(),
        "cached_tokens": count(),
        "generated_tokens": count(),
        "steps": count(),
        "rows": count(),
    }));
    let model = all(json!({
        "name": text(),
        "digest": text(),
        "target": text(),
        "device": text(),
        "context": count(),
        "queue": all(json!({ "waiting": count(), "limit": count() })),
        "running": count(),
        "rows_per_step": about(nullable(number()), "Over the last minute."),
        "cache": list(pool),
        "totals": totals,
        "history": all(json!({ "interval_seconds": count(), "points": list(point) })),
    }));
    let slow = all(json!({
        "id": text(),
        "model": text(),
        "endpoint": text(),
        "at": number(),
        "seconds": number(),
        "queued_seconds": number(),
        "first_token_seconds": nullable(number()),
        "prompt_tokens": count(),
        "generated_tokens": count(),
        "finish_reason": nullable(text()),
    }));
    all(json!({
        "version": text(),
        "uptime_seconds": number(),
        "draining": { "type": "boolean" },
        "models": list(model),
        "slowest": list(slow),
    }))
}

fn error() -> Value {
    let error = object(
        &["message", "type", "param", "code"],
        json!({
            "message": text(),
            "type": text(),
            "param": about(nullable(text()), "The field of the request."),
            "code": nullable(text()),
        }),
    );
    object(&["error"], json!({ "error": error }))
}
