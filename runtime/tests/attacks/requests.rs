//! Lines of a file of requests.

use serde_json::{Value, json};

use crate::fields::parse;

/// Returns the refusal of a line.
fn refused(line: impl AsRef<[u8]>) -> String {
    parse(line.as_ref()).1.unwrap_err()
}

#[test]
fn lines_that_are_no_object() {
    let check = |line: &str, reason: &str| {
        let expected = format!(
            "the line is no request: {reason}, expected an object such as {{\"prompt\": \"Hello\"}}\n\
             hint: write each request in one line, as jq -c does"
        );
        assert_eq!(refused(line), expected, "{line}");
    };
    check("hello", "expected value at column 1");
    check("{\"prompt\": \"a\"", "EOF while parsing an object at column 14");
    check("{\"prompt\": \"a\"} {}", "trailing characters at column 17");
    check("[1]", "invalid type: sequence, expected a JSON object at column 0");
    check("\"a\"", "invalid type: string \"a\", expected a JSON object at column 3");
    check("{\"prompt\": \"\\ud800\"}", "unexpected end of hex escape at column 19");
    check("{\"temperature\": 1e999}", "number out of range at column 21");
    check("{\"prompt\": \"a\", \"prompt\": \"b\"}", "`prompt` is given twice at column 30");
    check("\u{feff}{}", "expected value at column 1");
    check(&"[".repeat(100_000), "invalid type: sequence, expected a JSON object at column 0");
    let deep = format!("{{\"prompt\": {}", "[".repeat(100_000));
    check(&deep, "recursion limit exceeded at column 138");
    assert_eq!(
        refused(b"{\"prompt\": \"\xff\"}"),
        "the line is not UTF-8 at offset 12, expected a JSON object\n\
         hint: convert the file with iconv -t UTF-8"
    );
}

#[test]
fn fields_of_other_types() {
    let size = "a whole number, 0 or more";
    let limit = "a large number goes on until the text ends or the context is full";
    let id = "leave it out: every answer has the number of its line";
    let own_line = "give token ids as tokens, and each of several prompts its own line";
    let messages = "a list of objects with role and content, both texts";
    let user = r#"the last message is usually {"role": "user", "content": "Hello"}"#;
    let tokens = "a list of at least one token id";
    let own_ids = "give ids of the model's own tokenizer, as in [1, 2, 3]";
    let stop = "a text of at least one character, or a list of such";
    let seed = "a whole number from 0 to 18446744073709551615";
    let without_seed = "without it, the line has the seed of the command line plus its number";
    let all = "0 draws from all tokens";
    for (name, value, expected, hint) in [
        ("id", "1.5", "a text or a whole number", id),
        ("id", "[1]", "a text or a whole number", id),
        ("prompt", "[\"a\",\"b\"]", "a text", own_line),
        ("prompt", "1", "a text", own_line),
        ("messages", "[]", messages, user),
        ("messages", "\"a\"", messages, user),
        ("messages", r#"[{"role":"user"}]"#, messages, user),
        ("messages", r#"[{"role":"user","content":null}]"#, messages, user),
        ("messages", r#"[{"role":"user","content":[]}]"#, messages, user),
        ("messages", r#"[{"role":"user","content":"a","name":"b"}]"#, messages, user),
        ("tokens", "[]", tokens, own_ids),
        ("tokens", "[1,-1]", tokens, own_ids),
        ("tokens", "[4294967296]", tokens, own_ids),
        ("tokens", "[1.0]", tokens, own_ids),
        ("max_tokens", "-1", size, limit),
        ("max_tokens", "1.5", size, limit),
        ("max_tokens", "18446744073709551616", size, limit),
        ("max_tokens", "\"two\"", size, limit),
        ("temperature", "\"hot\"", "a number, 0 or more", "0 always takes the most likely token"),
        ("top_k", "-1", size, all),
        ("top_p", "true", "a number, above 0 and at most 1", "1 draws from all tokens"),
        ("min_p", "[]", "a number, 0 to 1", all),
        ("seed", "-1", seed, without_seed),
        ("seed", "0.5", seed, without_seed),
        ("stop", "\"\"", stop, "[] stops at no text"),
        ("stop", "[\"a\",\"\"]", stop, "[] stops at no text"),
        ("stop", "{}", stop, "[] stops at no text"),
        ("logprobs", "true", size, "0 records none"),
        ("ignore_eos", "1", "true or false", "leave it out to end at the model's end of text"),
    ] {
        let prompt = if ["prompt", "messages", "tokens"].contains(&name) { "" } else { r#""prompt":"a","# };
        let found = refused(format!("{{{prompt}\"{name}\":{value}}}"));
        // What is too large for an integer is shown as a number with a point.
        let value = value.replace("18446744073709551616", "1.8446744073709552e+19");
        assert_eq!(found, format!("{name} is {value}, expected {expected}\nhint: {hint}"));
    }
    let long = refused(json!({ "prompt": vec![7; 10_000] }).to_string());
    assert!(long.starts_with("prompt is [7,7,7") && long.len() < 250, "{long}");
}

#[test]
fn fields_that_are_unknown_or_missing() {
    let known = "expected some of id, prompt, messages, tokens, max_tokens, temperature, top_k, top_p, min_p, seed, \
                 stop, logprobs, ignore_eos\nhint: correct its name, or remove it";
    let unknown = |name: &str| refused(json!({ "prompt": "a", name: 1 }).to_string());
    assert_eq!(unknown("max_token"), format!("found the unknown field `max_token`, {known}"));
    assert_eq!(unknown("\u{1b}[2J"), format!("found the unknown field `\\u{{1b}}[2J`, {known}"));
    assert!(unknown(&"x".repeat(100_000)).len() < 400);
    let one = "expected one of prompt, messages and tokens\n\
               hint: prompt is a text to continue, messages is a chat";
    assert_eq!(refused("{}"), format!("found no prompt, {one}"));
    assert_eq!(refused(r#"{"prompt": null}"#), format!("found no prompt, {one}"));
    assert_eq!(refused(r#"{"prompt": "a", "tokens": [1]}"#), format!("found prompt and tokens, {one}"));
}

#[test]
fn an_error_keeps_the_id() {
    let id = |line: &str| parse(line.as_bytes()).0;
    assert_eq!(id(r#"{"max_tokens": -1, "id": "a", "prompt": "b"}"#), Some(Value::from("a")));
    assert_eq!(id(r#"{"id": -3}"#), Some(Value::from(-3)));
    assert_eq!(id(r#"{"id": {}}"#), None);
    assert_eq!(id(r#"{"id": "a""#), None);
}
