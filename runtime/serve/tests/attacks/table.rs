//! Bodies and their answers, written to `table.snap` for review.

use mlxcel_serve::Limits;
use serde_json::{Value, json};

use crate::{
    scripted::Server,
    wire::{check, exchange, post, start},
};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";

/// What a row is about, where it is sent, and what.
type Row = (&'static str, &'static str, Vec<u8>);

/// A body as it is.
fn raw(what: &'static str, body: impl Into<Vec<u8>>) -> Row {
    (what, TEXT, body.into())
}

/// A text to continue, with more fields.
fn text(what: &'static str, more: Value) -> Row {
    with(what, TEXT, json!({ "prompt": "a", "temperature": 0, "max_tokens": 4 }), more)
}

/// A chat, with more fields.
fn chat(what: &'static str, more: Value) -> Row {
    let message = json!({ "role": "user", "content": "a" });
    with(what, CHAT, json!({ "messages": [message], "temperature": 0, "max_tokens": 4 }), more)
}

/// A chat of one message.
fn message(what: &'static str, message: Value) -> Row {
    chat(what, json!({ "messages": [message] }))
}

fn with(what: &'static str, path: &'static str, mut body: Value, more: Value) -> Row {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    (what, path, body.to_string().into())
}

/// A schema that an answer is to have.
fn schema(what: &'static str, schema: Value) -> Row {
    text(
        what,
        json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "a", "schema": schema } } }),
    )
}

/// Bodies that are no JSON, or no object.
fn syntax() -> Vec<Row> {
    vec![
        raw("nothing", ""),
        raw("half of an object", "{\"prompt\": "),
        raw("a list", "[1]"),
        raw("null", "null"),
        raw("two objects", "{\"prompt\": \"a\"} {}"),
        raw("a field twice", "{\"prompt\": \"a\", \"prompt\": \"b\"}"),
        raw("a byte order mark", "\u{feff}{}"),
        raw("single quotes", "{'prompt': 'a'}"),
        raw("a comment", "{/* */}"),
        raw("bytes that are not UTF-8", b"{\"prompt\": \"\xff\xfe\"}"),
        raw("a name that is not UTF-8", b"{\"\xc3\x28\": 1}"),
        raw("half of a surrogate pair", "{\"prompt\": \"\\ud800\"}"),
        raw("a control character", "{\"prompt\": \"\u{1}\"}"),
        raw("not a number", "{\"prompt\": \"a\", \"temperature\": NaN}"),
        raw("infinity", "{\"prompt\": \"a\", \"temperature\": Infinity}"),
        raw("a number that is too large", "{\"prompt\": \"a\", \"temperature\": 1e999}"),
        raw("a number of 10,000 digits", format!("{{\"prompt\": \"a\", \"n\": {}}}", "9".repeat(10_000))),
        raw("100,000 lists in one another", "[".repeat(100_000)),
        raw("100,000 lists in a field", format!("{{\"prompt\": {}", "[".repeat(100_000))),
        raw("100,000 objects in one another", "{\"a\":".repeat(100_000)),
        raw("100,000 fields", format!("{{{}}}", vec!["\"a\": 1"; 100_000].join(","))),
        raw(
            "a field with a name of 100,000 bytes",
            format!("{{\"prompt\": \"a\", {:?}: 1}}", "x".repeat(100_000)),
        ),
        raw("an unknown field with markup", "{\"prompt\": \"a\", \"<script>\\u0000\\n\": 1}"),
    ]
}

/// Fields of other types, and numbers out of their ranges.
fn fields() -> Vec<Row> {
    let mut rows: Vec<Row> = [
        ("a prompt that is a number", json!({ "prompt": 1 })),
        ("a prompt that is an object", json!({ "prompt": {} })),
        ("a negative token", json!({ "prompt": [-1] })),
        ("a token that is no whole number", json!({ "prompt": [1.5] })),
        ("a token that 32 bits do not have", json!({ "prompt": [4_294_967_296_u64] })),
        ("a token that the model does not have", json!({ "prompt": [257] })),
        ("an empty prompt", json!({ "prompt": "" })),
        ("a prompt of no tokens", json!({ "prompt": [[]] })),
        ("129 prompts", json!({ "prompt": vec!["a"; 129] })),
        ("128 prompts", json!({ "prompt": vec!["a"; 128] })),
        ("a prompt with a zero", json!({ "prompt": "a\0" })),
        ("another model", json!({ "model": "../../etc/passwd" })),
        ("a negative temperature", json!({ "temperature": -0.1 })),
        ("a huge temperature", json!({ "temperature": 1e30 })),
        ("a temperature that is hardly above 0", json!({ "temperature": 1e-45, "seed": 1 })),
        ("a top_p above 1", json!({ "top_p": 1.1 })),
        ("a top_p that is hardly above 0", json!({ "temperature": 1, "top_p": 1e-45 })),
        ("a top_k of all", json!({ "temperature": 1, "top_k": i64::MAX, "top_p": 1e-9 })),
        ("a top_k below all", json!({ "top_k": i64::MIN })),
        ("a min_p above 1", json!({ "min_p": 2 })),
        ("a negative n", json!({ "n": -1 })),
        ("an n of 0", json!({ "n": 0 })),
        ("a huge n", json!({ "n": 1_000_000_000 })),
        ("an n that 64 bits do not have", json!({ "n": u64::MAX })),
        ("an n with a point", json!({ "n": 1.0 })),
        ("more answers than may wait", json!({ "n": 128, "prompt": vec!["a"; 128] })),
        ("no tokens", json!({ "max_tokens": 0 })),
        ("negative tokens", json!({ "max_tokens": -5 })),
        ("more tokens than the context", json!({ "max_tokens": i64::MAX })),
        ("a seed below 0", json!({ "seed": i64::MIN })),
        ("a seed that is a text", json!({ "seed": "1" })),
        ("a huge penalty", json!({ "presence_penalty": 1e9 })),
        ("a repetition penalty of 0", json!({ "repetition_penalty": 0 })),
        ("a bias for no token", json!({ "logit_bias": { "-1": 1 } })),
        ("a bias for a token that 32 bits do not have", json!({ "logit_bias": { "4294967296": 1 } })),
        ("a huge bias", json!({ "logit_bias": { "1": 1e300 } })),
        ("a bias of null", json!({ "logit_bias": { "1": null } })),
        ("a list of biases", json!({ "logit_bias": [[1, 1]] })),
        ("many logprobs", json!({ "logprobs": 6 })),
        ("logprobs of chats", json!({ "logprobs": true })),
        ("a stream that is a text", json!({ "stream": "yes" })),
        ("stream options without a stream", json!({ "stream_options": { "include_usage": true } })),
        ("unknown stream options", json!({ "stream": true, "stream_options": { "x": 1 } })),
        ("10,000 stop texts", json!({ "stop": vec!["b"; 10_000] })),
        ("a stop text of 1 MB", json!({ "stop": "b".repeat(1_000_000) })),
        ("64 stop texts of 10,000 bytes", json!({ "stop": vec!["b".repeat(10_000); 64] })),
        ("an empty stop text", json!({ "stop": ["a", ""] })),
        ("a stop text of null", json!({ "stop": [null] })),
        ("other numbers of tokens", json!({ "max_tokens": 1, "max_completion_tokens": 2 })),
        ("several formats", json!({ "regex": "a", "grammar": "start: \"a\"" })),
        ("a format and no end", json!({ "regex": "a", "ignore_eos": true })),
        ("a best of more", json!({ "best_of": 5, "n": 2 })),
        ("an unknown field", json!({ "guided_json": {} })),
        ("a field of its prototype", json!({ "__proto__": { "n": 5 } })),
    ]
    .into_iter()
    .map(|(what, more)| text(what, more))
    .collect();
    rows.push(("tokens of no text", "/tokenize", b"{\"content\": 1}".into()));
    rows.push(("texts of no tokens", "/detokenize", b"{\"tokens\": [-1]}".into()));
    rows.push(("the text of an unknown token", "/detokenize", b"{\"tokens\": [4294967295]}".into()));
    rows.push(("the text of a token in a text", "/tokenize", b"{\"content\": \"<s>\"}".into()));
    rows
}

/// Messages of chats.
fn messages() -> Vec<Row> {
    let call = |arguments: &str| json!([{ "id": "1", "type": "function", "function": { "name": "f", "arguments": arguments } }]);
    vec![
        chat("no messages", json!({ "messages": [] })),
        chat("messages that are a text", json!({ "messages": "a" })),
        chat("a message that is a text", json!({ "messages": ["a"] })),
        message("an unknown role", json!({ "role": "root", "content": "a" })),
        message("a role in capitals", json!({ "role": "System", "content": "a" })),
        message("a role with the text of a token", json!({ "role": "<s>", "content": "a" })),
        message("no role", json!({ "content": "a" })),
        message("content that is a number", json!({ "role": "user", "content": 3 })),
        message(
            "an image",
            json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "file:///etc/passwd" } }] }),
        ),
        message("a part of no type", json!({ "role": "user", "content": [{}] })),
        message("an unknown field of a message", json!({ "role": "user", "content": "a", "x": 1 })),
        message("calls by a user", json!({ "role": "user", "content": "a", "tool_calls": call("{}") })),
        message("arguments that are no JSON", json!({ "role": "assistant", "tool_calls": call("{") })),
        message("a result of no call", json!({ "role": "tool", "content": "a" })),
        chat(
            "10,000 messages",
            json!({ "messages": vec![json!({ "role": "user", "content": "a" }); 10_000] }),
        ),
        chat("stream options that are a text", json!({ "stream": true, "stream_options": "a" })),
        chat("a call that is a text", json!({ "messages": [{ "role": "assistant", "tool_calls": ["a"] }] })),
        (
            "the text of a token in a message",
            "/apply-template",
            br#"{"messages": [{"role": "user", "content": "a<s>"}, {"role": "system", "content": "<s>"}]}"#
                .into(),
        ),
        chat("a choice of tools without tools", json!({ "tool_choice": "required" })),
        chat(
            "a choice of an unknown tool",
            json!({ "tool_choice": { "type": "function", "function": { "name": "f" } } }),
        ),
        chat("tools that are no list", json!({ "tools": {} })),
        chat("a tool of no function", json!({ "tools": [{ "type": "function" }] })),
        chat(
            "tools that the template does not have",
            json!({ "tools": [{ "type": "function", "function": { "name": "f" } }] }),
        ),
        chat("top_logprobs without logprobs", json!({ "top_logprobs": 2 })),
        chat("negative top_logprobs", json!({ "logprobs": true, "top_logprobs": -1 })),
        chat("variables of the template that are no object", json!({ "chat_template_kwargs": [] })),
        chat("variables that stand for messages", json!({ "chat_template_kwargs": { "messages": [] } })),
        chat("a template of its own", json!({ "chat_template": "{{ 1 }}" })),
    ]
}

/// Schemas that cannot be enforced, or would take for ever.
fn schemas() -> Vec<Row> {
    let deep = |levels: usize| {
        (0..levels).fold(json!({ "type": "integer" }), |inner, _| json!({ "type": "array", "items": inner }))
    };
    let definitions: serde_json::Map<String, Value> = (0..30)
        .map(|level| {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            (
                format!("d{level}"),
                json!({ "type": "object", "properties": { "a": next, "b": next }, "required": ["a", "b"] }),
            )
        })
        .chain([("d30".to_owned(), json!({ "type": "null" }))])
        .collect();
    let all_of = |count: usize| {
        let part = |index: usize| json!({ "anyOf": [{ "required": [format!("a{index}")] }, { "required": [format!("b{index}")] }] });
        json!({ "type": "object", "allOf": (0..count).map(part).collect::<Vec<_>>() })
    };
    let many: serde_json::Map<String, Value> = (0..20_000)
        .map(|index| (format!("a property with the number {index}"), json!({ "type": "integer" })))
        .collect();
    vec![
        text("a format of no type", json!({ "response_format": {} })),
        text("an unknown format", json!({ "response_format": { "type": "xml" } })),
        schema("a type that does not exist", json!({ "type": "nope" })),
        schema("a type that is a number", json!({ "type": 3 })),
        schema("properties that are a list", json!({ "properties": [] })),
        schema("a minimum that is a text", json!({ "type": "integer", "minimum": "a" })),
        schema("a minimum above the maximum", json!({ "type": "integer", "minimum": 5, "maximum": 1 })),
        schema("a schema of nothing", json!({ "not": {} })),
        schema("no value", json!({ "enum": [] })),
        schema("a part that is not known", json!({ "type": "object", "unevaluatedProperties": false })),
        schema("a reference to nowhere", json!({ "$ref": "#/$defs/none" })),
        schema("a reference to another machine", json!({ "$ref": "http://localhost:1/schema.json" })),
        schema("a reference to a file", json!({ "$ref": "file:///etc/passwd" })),
        schema("a reference to itself", json!({ "$ref": "#" })),
        schema(
            "references in a circle",
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        ),
        schema(
            "a tree",
            json!({ "type": "object", "properties": { "next": { "$ref": "#" } }, "additionalProperties": false }),
        ),
        schema("lists in one another", deep(50)),
        schema("2^30 objects", json!({ "$ref": "#/$defs/d0", "$defs": definitions })),
        schema("2^20 combinations", all_of(20)),
        schema("1 MB of properties", json!({ "type": "object", "properties": many })),
        schema("1 MB of a constant", json!({ "const": "a".repeat(1_000_000) })),
        schema("a text of a billion characters", json!({ "type": "string", "minLength": 1_000_000_000 })),
        schema(
            "a list of a billion",
            json!({ "type": "array", "items": { "type": "null" }, "minItems": 1_000_000_000 }),
        ),
        schema(
            "an expression that takes long",
            json!({ "type": "string", "pattern": "^(([a-z]{1,100}){1,100}){1,100}$" }),
        ),
        schema("an expression that is none", json!({ "type": "string", "pattern": "(" })),
    ]
}

/// Expressions and grammars of the same kind.
fn grammars() -> Vec<Row> {
    vec![
        text("an expression of a billion", json!({ "regex": "((((a{1000}){1000}){1000})" })),
        text("a large expression", json!({ "regex": "(((a{1000}){1000}){1000})" })),
        text("an expression that looks ahead", json!({ "regex": "(?=a)b" })),
        text("an expression that refers back", json!({ "regex": "(a)\\1" })),
        text(
            "parentheses in one another",
            json!({ "regex": format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000)) }),
        ),
        text("an empty grammar", json!({ "grammar": "" })),
        text("a grammar without a start", json!({ "grammar": "a: \"b\"" })),
        text("a grammar that never ends", json!({ "grammar": "start: start" })),
        text("a grammar that recurses from the left", json!({ "grammar": "start: start \"a\" | \"b\"" })),
        text("a grammar of nothing but empty rules", json!({ "grammar": "start: a*\na: b*\nb: " })),
        text("a grammar that includes a file", json!({ "grammar": "%import .secret.rule\nstart: rule" })),
        text(
            "a grammar with parentheses in one another",
            json!({ "grammar": format!("start: {}\"a\"{}", "(".repeat(50_000), ")".repeat(50_000)) }),
        ),
        text(
            "a grammar of 100,000 rules",
            json!({ "grammar": (0..100_000).map(|rule| format!("r{rule}: \"a\"\n")).chain(["start: r0".to_owned()]).collect::<String>() }),
        ),
    ]
}

/// Answers in one line: the status, and the error or the texts.
async fn answer(server: &Server, path: &str, body: &[u8]) -> String {
    let headers = format!("content-length: {}\r\nconnection: close\r\n", body.len());
    let mut request = post(path, &headers, "").into_bytes();
    request.extend(body);
    let answer = exchange(server, request).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let error = &body["error"];
    let text = match error["message"].as_str() {
        Some(message) => {
            let short: String = message.chars().take(200).collect();
            let name =
                |field: &str| error[field].as_str().map_or(String::new(), |name| format!(" {name:.60}"));
            format!("{}{}{}: {short}", error["type"].as_str().unwrap(), name("code"), name("param"))
        }
        None => match body["choices"].as_array() {
            Some(choices) if choices.len() < 4 => choices
                .iter()
                .map(|choice| {
                    format!(
                        "{} {}",
                        choice["finish_reason"],
                        choice.get("text").unwrap_or(&choice["message"]["content"])
                    )
                })
                .collect::<Vec<_>>()
                .join(", "),
            Some(choices) => format!("{} answers", choices.len()),
            None => body.to_string(),
        },
    };
    // The table is text.
    let text =
        text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    format!("{status} {}", text.collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_body_has_its_answer() {
    let server = start(Limits { max_body: 4 << 20, ..Limits::default() }).await;
    let rows: Vec<_> =
        [syntax(), fields(), messages(), schemas(), grammars()].into_iter().flatten().collect();
    assert!(rows.len() >= 140, "{} rows", rows.len());
    let mut table = String::new();
    for (what, path, body) in rows {
        let answer = answer(&server, path, &body).await;
        check(&server, what).await;
        assert!(!answer.starts_with("500"), "{what}: {answer}");
        table += &format!("{what}\n    {answer}\n");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(".");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("table", table));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaks_between_requests() {
    let server = start(Limits::default()).await;
    let hostile: Vec<_> = [syntax(), messages()].into_iter().flatten().collect();
    for turn in 0..20 {
        let mut asked = Vec::new();
        for (index, letter) in ('b'..='f').enumerate() {
            let (what, path, body) = text(
                "a letter",
                json!({ "prompt": letter.to_string(), "max_tokens": 12, "logit_bias": { "122": index } }),
            );
            let (_, bad_path, bad_body) = &hostile[(turn * 5 + index) % hostile.len()];
            let server = &server;
            asked.push(async move {
                let (answer, _) =
                    tokio::join!(answer(server, path, &body), answer(server, bad_path, bad_body));
                let expected: String = (1..=12).map(|step| char::from(letter as u8 + step)).collect();
                assert_eq!(answer, format!("200 \"length\" {expected:?}"), "{what} {letter}");
            });
        }
        let mut asked = asked.into_iter();
        let mut next = || asked.next().unwrap();
        tokio::join!(next(), next(), next(), next(), next());
    }
    check(&server, "requests at once").await;
}
