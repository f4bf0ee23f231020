//! What requests take.

use serde_json::{Value, json};

use super::schema::{
    about, body, boolean, choice, integer, list, named, nullable, number, object, one_of, text, token,
};
use crate::api::{
    chat::MAX_TOP_LOGPROBS,
    completion::{DEFAULT_MAX_TOKENS, MAX_LOGPROBS, MAX_PROMPTS},
    embeddings::MAX_INPUTS,
    generation::{MAX_ANSWERS, MAX_STOPS},
    tools::MAX_FUNCTIONS,
};

/// Names of tools: those that every chat template takes.
const TOOL_NAME: &str = "^[a-zA-Z0-9_.-]{1,64}$";

/// Names of schemas, as OpenAI has them.
const SCHEMA_NAME: &str = "^[a-zA-Z0-9_-]{1,64}$";

pub(super) fn schemas(models: &[&str]) -> Vec<(&'static str, Value)> {
    vec![
        ("ChatRequest", chat(models)),
        ("CompletionRequest", completion(models)),
        ("EmbeddingRequest", embeddings(models)),
        ("TokenizeRequest", tokenize(models)),
        ("DetokenizeRequest", detokenize(models)),
        ("ReloadRequest", reload(models)),
        ("Message", message()),
        ("TextParts", parts()),
        ("Tool", tool()),
        ("ResponseFormat", response_format()),
    ]
}

/// The name of a model, any if none is known. A server of one model takes the empty one, too.
fn model(models: &[&str]) -> Value {
    let unnamed = [""].into_iter().filter(|_| models.len() == 1);
    let names: Vec<&str> = models.iter().copied().chain(unnamed).collect();
    let name = if models.is_empty() { text() } else { choice(&names) };
    about(name, "The name of the model. A server of one model needs none.")
}

fn chat(models: &[&str]) -> Value {
    let mut properties = generation(models);
    let more = json!({
        "messages": { "type": "array", "minItems": 1, "items": named("Message") },
        "tools": { "type": "array", "maxItems": MAX_FUNCTIONS, "items": named("Tool") },
        "tool_choice": about(
            one_of([
                choice(&["auto", "none", "required"]),
                object(&["type", "function"], json!({
                    "type": { "const": "function" },
                    "function": object(&["name"], json!({ "name": text() })),
                })),
            ]),
            "Whether functions are called, and which. Needs tools.",
        ),
        "parallel_tool_calls": about(boolean(true), "Whether an answer may have several calls. Needs tools."),
        "chat_template_kwargs": about(json!({ "type": "object" }), "Variables of the chat template."),
        "logprobs": boolean(false),
        "top_logprobs": about(integer(0, MAX_TOP_LOGPROBS as i64), "Needs logprobs."),
        "modalities": { "const": ["text"] },
    });
    extend(&mut properties, more);
    body(&["messages"], properties)
}

fn completion(models: &[&str]) -> Value {
    let mut properties = generation(models);
    let more = json!({
        "prompt": texts(MAX_PROMPTS, text()),
        "logprobs": integer(0, MAX_LOGPROBS as i64),
        "best_of": about(integer(1, MAX_ANSWERS as i64), "Has to be n."),
        "echo": { "const": false },
        "suffix": { "const": "" },
    });
    extend(&mut properties, more);
    for name in ["max_tokens", "max_completion_tokens"] {
        properties[name]["default"] = DEFAULT_MAX_TOKENS.into();
    }
    body(&["prompt"], properties)
}

fn embeddings(models: &[&str]) -> Value {
    body(
        &["input"],
        json!({
            "model": model(models),
            "input": texts(MAX_INPUTS, json!({ "type": "string", "minLength": 1 })),
            "encoding_format": { "type": "string", "enum": ["float", "base64"], "default": "float" },
            "dimensions": about(json!({ "type": "integer", "minimum": 1 }), "Has to be the width of the model's embeddings."),
            "user": about(json!({}), "Changes nothing."),
        }),
    )
}

fn tokenize(models: &[&str]) -> Value {
    let special = about(boolean(false), "Whether to add the tokens that the checkpoint begins texts with.");
    body(&["content"], json!({ "model": model(models), "content": text(), "add_special": special }))
}

fn detokenize(models: &[&str]) -> Value {
    body(&["tokens"], json!({ "model": model(models), "tokens": list(token()) }))
}

fn reload(models: &[&str]) -> Value {
    body(
        &[],
        json!({
            "model": model(models),
            "bundle": about(text(), "Another bundle: a folder, or a name in the store."),
            "digest": about(
                json!({ "type": "string", "pattern": "^blake3:[0-9a-f]{64}$" }),
                "The digest that the bundle must have.",
            ),
        }),
    )
}

/// One text or several, or their tokens.
fn texts(most: usize, text: Value) -> Value {
    let several = |items: Value| json!({ "type": "array", "minItems": 1, "maxItems": most, "items": items });
    let tokens = json!({ "type": "array", "minItems": 1, "items": token() });
    one_of([text.clone(), several(text), tokens.clone(), several(tokens)])
}

/// The fields that chat and text completions have in common.
fn generation(models: &[&str]) -> Value {
    let unused = || about(json!({}), "Changes nothing.");
    let stop = json!({ "type": "string", "minLength": 1 });
    let stops = json!({ "type": "array", "maxItems": MAX_STOPS, "items": stop });
    json!({
        "model": model(models),
        "temperature": number(0.0, 2.0, 1.0),
        "top_p": number(0.0, 1.0, 1.0),
        "min_p": number(0.0, 1.0, 0.0),
        "top_k": about(integer(i64::MIN, i64::MAX), "0 and less for all tokens."),
        "seed": integer(i64::MIN, i64::MAX),
        "presence_penalty": number(-2.0, 2.0, 0.0),
        "frequency_penalty": number(-2.0, 2.0, 0.0),
        "repetition_penalty": number(0.01, 100.0, 1.0),
        "logit_bias": about(
            json!({
                "type": "object",
                "propertyNames": { "pattern": "^[0-9]{1,10}$" },
                "additionalProperties": { "type": "number", "minimum": -100, "maximum": 100 },
            }),
            "Biases by token id.",
        ),
        "n": about(integer(1, MAX_ANSWERS as i64), "The number of answers to each prompt."),
        "max_completion_tokens": integer(1, i64::MAX),
        "max_tokens": about(integer(1, i64::MAX), "The older name of max_completion_tokens."),
        "stop": one_of([stop, stops]),
        "ignore_eos": about(boolean(false), "Whether to go on after the token that ends an answer."),
        "stream": boolean(false),
        "stream_options": about(
            object(&[], json!({ "include_usage": boolean(false), "include_obfuscation": boolean(false) })),
            "Needs stream.",
        ),
        "response_format": named("ResponseFormat"),
        "regex": about(text(), "A regular expression that the whole answer matches."),
        "grammar": about(text(), "A grammar of the answer, in llguidance's form of Lark."),
        "speculate": about(boolean(false), "Whether tokens are guessed ahead, which changes no answer."),
        "receipt": about(boolean(false), "Whether to add what it takes to replay each answer."),
        "store": { "const": false },
        "user": unused(),
        "metadata": unused(),
        "safety_identifier": unused(),
        "prompt_cache_key": unused(),
        "service_tier": unused(),
    })
}

fn message() -> Value {
    let content = || one_of([text(), named("TextParts")]);
    let nothing = json!({ "type": "null" });
    let of = |role: Value, required: &[&str], more: Value| {
        let mut properties =
            json!({ "role": role, "content": content(), "name": nullable(text()), "refusal": nothing });
        extend(&mut properties, more);
        let mut message = object(required, properties);
        // Members that are null are as good as absent.
        message["additionalProperties"] = nothing.clone();
        message
    };
    let function = json!({
        "type": "object",
        "required": ["name", "arguments"],
        "properties": { "name": text(), "arguments": about(text(), "A JSON object.") },
    });
    let call = json!({
        "type": "object",
        "required": ["id", "function"],
        "properties": { "id": text(), "type": nullable(json!({ "const": "function" })), "function": function },
    });
    let assistant = json!({
        "content": nullable(content()),
        "refusal": nullable(text()),
        "reasoning_content": nullable(text()),
        "tool_calls": nullable(list(call)),
    });
    let mut of_tool = of(
        json!({ "const": "tool" }),
        &["role", "content", "tool_call_id"],
        json!({ "tool_call_id": text() }),
    );
    of_tool["properties"]["reasoning_content"] = nothing.clone();
    of_tool["properties"]["tool_calls"] = nothing.clone();
    let mut of_assistant = of(json!({ "const": "assistant" }), &["role"], assistant);
    of_assistant["properties"]["tool_call_id"] = nothing.clone();
    let plain = json!({ "reasoning_content": nothing, "tool_calls": nothing, "tool_call_id": nothing });
    one_of([of(choice(&["system", "developer", "user"]), &["role", "content"], plain), of_assistant, of_tool])
}

fn parts() -> Value {
    list(json!({
        "type": "object",
        "required": ["type", "text"],
        "properties": { "type": { "const": "text" }, "text": text() },
    }))
}

fn tool() -> Value {
    let function = object(
        &["name"],
        json!({
            "name": { "type": "string", "pattern": TOOL_NAME },
            "description": nullable(text()),
            "parameters": about(nullable(json!({ "type": "object" })), "A JSON Schema of the arguments."),
            "strict": about(
                nullable(json!({ "type": "boolean" })),
                "Whether a schema that cannot be enforced is refused.",
            ),
        }),
    );
    object(&["type", "function"], json!({ "type": { "const": "function" }, "function": function }))
}

fn response_format() -> Value {
    let schema = object(
        &["name"],
        json!({
            "name": { "type": "string", "pattern": SCHEMA_NAME },
            "description": nullable(text()),
            "strict": nullable(json!({ "type": "boolean" })),
            "schema": about(nullable(json!({ "type": "object" })), "A JSON Schema. All of it is enforced."),
        }),
    );
    one_of([
        object(&["type"], json!({ "type": { "const": "text" } })),
        object(&["type"], json!({ "type": { "const": "json_object" } })),
        object(
            &["type", "json_schema"],
            json!({ "type": { "const": "json_schema" }, "json_schema": schema }),
        ),
    ])
}

/// Adds properties to others.
fn extend(properties: &mut Value, more: Value) {
    if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
        properties.extend(more);
    }
}
