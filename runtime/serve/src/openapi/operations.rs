//! The paths of the server.

use serde_json::{Map, Value, json};

use super::schema::{about, named, one_of, text};

/// What an operation answers.
#[derive(Clone, Copy)]
enum Answer {
    /// JSON of this schema.
    Json(&'static str),
    /// JSON of the first schema, or a stream of events with JSON of the second.
    JsonOrEvents(&'static str, &'static str),
    /// Text of this type.
    Text(&'static str),
}

/// Whose key an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    None,
    Client,
    Admin,
}

struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// The schema of the body, if there is one.
    body: Option<&'static str>,
    answer: Answer,
    key: Key,
    /// Statuses of errors besides those of bodies and keys.
    errors: &'static [u16],
}

/// Statuses of requests whose body is refused.
const OF_BODIES: [u16; 4] = [400, 408, 413, 415];

/// Statuses of requests that a model answers.
const OF_MODELS: &[u16] = &[404, 429, 500, 503, 504];

const PAGE: Answer = Answer::Text("text/html");

const OPERATIONS: &[Operation] = &[
    Operation {
        summary: "Continue a chat",
        body: Some("ChatRequest"),
        answer: Answer::JsonOrEvents("ChatCompletion", "ChatCompletionChunk"),
        errors: OF_MODELS,
        ..post("/v1/chat/completions")
    },
    Operation {
        summary: "Continue texts",
        body: Some("CompletionRequest"),
        answer: Answer::JsonOrEvents("Completion", "CompletionChunk"),
        errors: OF_MODELS,
        ..post("/v1/completions")
    },
    Operation {
        summary: "Embed texts",
        body: Some("EmbeddingRequest"),
        answer: Answer::Json("Embeddings"),
        errors: OF_MODELS,
        ..post("/v1/embeddings")
    },
    Operation { summary: "List models", answer: Answer::Json("Models"), ..get("/v1/models") },
    Operation {
        summary: "Show a model",
        answer: Answer::Json("Model"),
        errors: &[404],
        ..get("/v1/models/{model}")
    },
    Operation {
        summary: "Turn a text into tokens",
        body: Some("TokenizeRequest"),
        answer: Answer::Json("Tokens"),
        errors: &[404],
        ..post("/tokenize")
    },
    Operation {
        summary: "Turn tokens into a text",
        body: Some("DetokenizeRequest"),
        answer: Answer::Json("Text"),
        errors: &[404],
        ..post("/detokenize")
    },
    Operation {
        summary: "Show a chat as the model reads it",
        body: Some("ChatRequest"),
        answer: Answer::Json("RenderedChat"),
        errors: &[404],
        ..post("/apply-template")
    },
    Operation {
        summary: "Exchange a bundle",
        body: Some("ReloadRequest"),
        answer: Answer::Json("Reloaded"),
        key: Key::Admin,
        errors: &[403, 404, 409, 503],
        ..post("/admin/reload")
    },
    Operation {
        summary: "Show counts and latencies",
        answer: Answer::Text("text/plain; version=0.0.4; charset=utf-8"),
        ..get("/metrics")
    },
    Operation {
        summary: "Show the last minutes and the slowest requests",
        answer: Answer::Json("Status"),
        ..get("/status.json")
    },
    Operation { summary: "Show this document", answer: Answer::Json("Document"), ..get("/openapi.json") },
    Operation { summary: "Show the chat page", answer: PAGE, key: Key::None, ..get("/") },
    Operation { summary: "Show the status page", answer: PAGE, key: Key::None, ..get("/status") },
    Operation {
        summary: "Say that the server runs",
        answer: Answer::Json("Health"),
        key: Key::None,
        ..get("/health/live")
    },
    Operation {
        summary: "Say whether the server can answer",
        answer: Answer::Json("Health"),
        key: Key::None,
        ..get("/health/ready")
    },
];

const fn get(path: &'static str) -> Operation {
    let answer = Answer::Json("Error");
    Operation { method: "get", path, summary: "", body: None, answer, key: Key::Client, errors: &[] }
}

const fn post(path: &'static str) -> Operation {
    Operation { method: "post", ..get(path) }
}

/// Returns the object of all paths.
pub(super) fn paths(needs_key: bool) -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.to_json(needs_key);
    }
    Value::Object(paths)
}

/// Returns the answers of errors, by their statuses.
pub(super) fn errors() -> Value {
    let mut errors = Map::new();
    for (status, description) in [
        (400, "The request is invalid; param names the field"),
        (401, "The key is missing or wrong"),
        (403, "The server has no key for this"),
        (404, "There is no such model"),
        (408, "The body took too long"),
        (409, "Another request changes the same model"),
        (413, "The body is too large"),
        (415, "The body is no JSON by its type"),
        (429, "Too many requests wait"),
        (500, "The device or the server failed"),
        (503, "The model has stopped, or the server is about to"),
        (504, "The answer took too long"),
    ] {
        let mut error = json!({
            "description": description,
            "content": { "application/json": { "schema": named("Error") } },
        });
        if status == 429 {
            let seconds = json!({ "type": "integer", "minimum": 1 });
            error["headers"] =
                json!({ "Retry-After": { "description": "Seconds", "required": true, "schema": seconds } });
        }
        errors.insert(name_of(status), error);
    }
    Value::Object(errors)
}

fn name_of(status: u16) -> String {
    format!("Error{status}")
}

impl Operation {
    fn to_json(&self, needs_key: bool) -> Value {
        let mut responses = Map::new();
        responses.insert("200".into(), json!({ "description": "Success", "content": self.answer.content() }));
        let of_bodies = OF_BODIES.iter().filter(|_| self.body.is_some());
        let of_keys = match self.key {
            Key::Client if needs_key => &[401][..],
            Key::Admin => &[401],
            _ => &[],
        };
        for &status in of_bodies.chain(of_keys).chain(self.errors) {
            let error = json!({ "$ref": format!("#/components/responses/{}", name_of(status)) });
            responses.insert(status.to_string(), error);
        }
        if self.path == "/health/ready" {
            let content = json!({ "application/json": { "schema": named("Unavailable") } });
            let unavailable = json!({ "description": "A model has stopped", "content": content });
            responses.insert("503".into(), unavailable);
        }
        let mut operation = json!({ "summary": self.summary, "responses": responses });
        if let Some(body) = self.body {
            let content = json!({ "application/json": { "schema": named(body) } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        if let Some((_, rest)) = self.path.split_once('{') {
            let name = rest.trim_end_matches('}');
            operation["parameters"] =
                json!([{ "name": name, "in": "path", "required": true, "schema": text() }]);
        }
        match self.key {
            Key::Client if needs_key => operation["security"] = json!([{ "key": [] }]),
            Key::Admin => operation["security"] = json!([{ "admin": [] }]),
            _ => {}
        }
        operation
    }
}

impl Answer {
    fn content(self) -> Value {
        match self {
            // It describes itself.
            Self::Json("Document") => json!({ "application/json": { "schema": { "type": "object" } } }),
            Self::Json(name) => json!({ "application/json": { "schema": named(name) } }),
            Self::JsonOrEvents(name, part) => {
                let part = json!({
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": one_of([named(part), named("Error")]),
                });
                let data = one_of([part, json!({ "const": "[DONE]" })]);
                let data = about(data, "Parts of the answer, an error if it fails, and [DONE] at its end.");
                // Each event of the stream.
                let event = json!({ "type": "object", "required": ["data"], "properties": { "data": data } });
                json!({
                    "application/json": { "schema": named(name) },
                    "text/event-stream": { "schema": event },
                })
            }
            Self::Text(kind) => json!({ kind: { "schema": text() } }),
        }
    }
}
