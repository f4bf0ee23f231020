//! Receipts that nobody wrote, and that somebody changed.

use mlxcel_runtime::{
    Engine, EngineSettings, Request, StopReason,
    receipt::{self, Maker, Receipt, RecordedAnswer, RecordedRequest, TextRules},
    scripted::ScriptedModel,
};
use serde_json::{Value, json};

/// Returns the JSON of a good receipt.
fn good() -> Value {
    let request = Request { prompt: vec![1, 2], max_tokens: 3, eos: vec![9], ..Request::default() };
    let request = RecordedRequest::new(&request, 64, TextRules::default(), None);
    let bundle = mlxcel_artifacts::Digest::of(b"scripted");
    let maker = Maker { bundle, target: "script".into(), model: "demo".into() };
    let answer = RecordedAnswer { tokens: vec![3, 4, 5], finish_reason: StopReason::Length };
    serde_json::to_value(Receipt::new(maker, 7, request, answer)).unwrap()
}

/// Returns the refusal of a file.
fn refused(bytes: impl AsRef<[u8]>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("receipt.json");
    std::fs::write(&file, bytes).unwrap();
    receipt::read(&file).unwrap_err().to_string()
}

/// Returns the refusal of a good receipt with another value at a JSON pointer.
fn changed(pointer: &str, value: Value) -> String {
    let mut receipt = good();
    match receipt.pointer_mut(pointer) {
        Some(found) => *found = value,
        None => receipt[pointer.trim_start_matches('/')] = value,
    }
    refused(receipt.to_string())
}

#[test]
fn files_that_have_no_receipt() {
    let missing = "found no receipt, expected one or an answer that has one\n\
                   hint: a server writes receipts of requests with \"receipt\": true";
    for text in [
        "[]",
        "7",
        "{}",
        "{\"choices\": []}",
        "{\"receipt\": null}",
        "{\"receipt\": []}",
        "{\"receipts\": []}",
        "{\"receipts\": {}}",
        "{\"receipts\": [1]}",
        "{\"receipt\": {\"version\": \"1\"}}",
        "data: {}",
        "data: x\n\ndata: [DONE]\n",
    ] {
        assert_eq!(refused(text), missing, "{text}");
    }
    for (text, problem) in [
        (&b""[..], "EOF while parsing a value at line 1 column 0"),
        (b"{\"receipt\"", "EOF while parsing an object at line 1 column 10"),
        (b"{\"receipt\": \"\xff\"}", "invalid unicode code point at line 1 column 14"),
        (&[b'['; 100_000], "recursion limit exceeded at line 1 column 128"),
    ] {
        assert_eq!(refused(text), format!("found no valid receipt: {problem}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let read = |path: &std::path::Path| mlxcel_artifacts::report(&receipt::read(path).unwrap_err());
    assert!(read(folder.path()).ends_with("not a regular file"));
    assert!(read(&folder.path().join("x")).ends_with("No such file or directory (os error 2)"));
    let large = folder.path().join("large");
    std::fs::File::create(&large).unwrap().set_len(receipt::MAX_BYTES + 1).unwrap();
    assert!(read(&large).ends_with("found 67108865 bytes, expected at most 67108864"));
}

#[test]
fn parts_of_other_types() {
    let version =
        "the receipt has the version 2, expected 1\nhint: use a program of the version of the server";
    assert_eq!(changed("/version", json!(2)), version);
    for (pointer, value, problem) in [
        (
            "/bundle",
            json!("sha256:00"),
            "`sha256:00` is not a digest, expected `blake3:` and 64 lower-case hex digits",
        ),
        ("/target", json!(1), "invalid type: integer `1`, expected a string"),
        ("/created", json!(-1), "invalid value: integer `-1`, expected u64"),
        ("/request/prompt", json!("a"), "invalid type: string \"a\", expected a sequence"),
        ("/request/prompt/0", json!(-1), "invalid value: integer `-1`, expected u32"),
        ("/request/prompt/0", json!(1u64 << 32), "invalid value: integer `4294967296`, expected u32"),
        ("/request/max_tokens", json!(1.5), "invalid type: floating point `1.5`, expected usize"),
        ("/request/sampling", json!({}), "missing field `temperature`"),
        (
            "/request/sampling",
            json!({ "temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "seed": "x" }),
            "found \"x\", expected a whole number as text",
        ),
        ("/request/logit_bias", json!([[1, "nan"]]), "found the bias \"nan\", expected a number"),
        ("/request/logit_bias", json!([[1, []]]), "a number, \"inf\" or \"-inf\""),
        (
            "/request/constraint",
            json!({ "xml": "" }),
            "unknown variant `xml`, expected one of `json_schema`, `regex`, `lark`",
        ),
        (
            "/answer/finish_reason",
            json!("cancelled"),
            "found the finish_reason \"cancelled\", expected one of eos, stop, length, context",
        ),
        ("/signature", json!(1), "invalid type: integer `1`, expected a string"),
        ("/note", json!(1), "unknown field `note`, expected one of"),
    ] {
        let found = changed(pointer, value);
        let text = found.strip_prefix("found no valid receipt: ").unwrap_or(&found);
        assert!(text.starts_with(problem), "{pointer}: {found}");
    }
}

#[test]
fn tokens_that_were_changed() {
    let hint = "hint: the receipt was changed";
    let found = changed("/answer/tokens/1", json!(5));
    assert!(found.starts_with("the hash of the answer is blake3:") && found.ends_with(hint), "{found}");
    let found = changed("/request/prompt/1", json!(5));
    assert!(found.starts_with("the hash of the prompt is blake3:") && found.ends_with(hint), "{found}");
    let found = changed("/prompt_hash", good()["answer_hash"].clone());
    assert!(found.starts_with("the hash of the prompt is blake3:"), "{found}");
    let expected = "the answer has 3 tokens, expected at most the 2 of the request";
    assert_eq!(changed("/request/max_tokens", json!(2)), expected);
}

#[test]
fn requests_that_no_engine_takes() {
    let replay = |change: &dyn Fn(&mut RecordedRequest), tokens: Vec<u32>| {
        let mut engine =
            Engine::new(ScriptedModel::answering(64, 10, 2, &[3, 4, 5]), EngineSettings::default()).unwrap();
        let request = Request { prompt: vec![1, 2], max_tokens: 3, ..Request::default() };
        let mut request = RecordedRequest::new(&request, 64, TextRules::default(), None);
        change(&mut request);
        let bundle = engine.limits().model;
        let maker = Maker { bundle, target: "script".into(), model: "demo".into() };
        let answer = RecordedAnswer { tokens, finish_reason: StopReason::Length };
        let receipt = Receipt::new(maker, 7, request, answer);
        let replayed = receipt::replay(&mut engine, &receipt, None, None, &mlxcel_runtime::Cancel::new());
        replayed.map_err(|error| error.to_string().lines().next().unwrap().to_owned())
    };
    let tokens = || vec![3, 4, 5];
    assert_eq!(replay(&|_| {}, tokens()), Ok(receipt::Replayed::Equal));
    let refused = |change: &dyn Fn(&mut RecordedRequest)| replay(change, tokens()).unwrap_err();
    assert_eq!(refused(&|request| request.prompt.clear()), "the prompt has no tokens, expected at least one");
    let expected = "token 2 of the prompt has the id 10, expected 0 to 9";
    assert_eq!(refused(&|request| request.prompt[1] = 10), expected);
    let long = |request: &mut RecordedRequest| request.prompt = vec![1; 65];
    assert_eq!(refused(&long), "65 tokens, expected at most 64, the size of the context");
    let expected = "a logit bias is for the token 10, expected 0 to 9";
    assert_eq!(refused(&|request| request.logit_bias = vec![(10, 1.0)]), expected);
    let expected = "token 3 of the answer has the id 4000000000, expected 0 to 9";
    assert_eq!(replay(&|_| {}, vec![3, 4, 4_000_000_000]).unwrap_err(), expected);
    let endless = |request: &mut RecordedRequest| request.max_tokens = usize::MAX;
    let expected = receipt::Replayed::Token { index: 3, found: Some(5), expected: None };
    assert_eq!(replay(&endless, tokens()), Ok(expected));
}
