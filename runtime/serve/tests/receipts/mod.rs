//! Receipts of answers, which are made again by another engine.

use std::sync::Arc;

use mlxcel_artifacts::{Digest, PublicKey, SecretKey};
use mlxcel_runtime::{
    Cancel, Engine, EngineSettings, StopReason,
    grammar::GrammarCompiler,
    receipt::{self, Receipt, Replayed},
};
use mlxcel_serve::Settings;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    events,
    scripted::{Server, Speed, counting, text},
};

/// Starts a server that signs receipts.
async fn signing() -> (Server, PublicKey) {
    let folder = tempfile::tempdir().unwrap();
    let [secret, public] = ["key", "pub"].map(|name| folder.path().join(name));
    let public = SecretKey::generate(&secret, &public, None).unwrap();
    let key = SecretKey::open(&secret, || unreachable!("it has no password")).unwrap();
    let settings = Settings { receipt_key: Some(Arc::new(key)), ..Settings::default() };
    (Server::with(Speed::Fast, settings).await, public)
}

/// Returns the receipts of an answer, as another program reads them.
fn receipts(answer: &Value) -> Vec<Receipt> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answer.json");
    std::fs::write(&file, answer.to_string()).unwrap();
    receipt::read(&file).unwrap()
}

/// Makes the answer of a receipt again.
fn replayed(receipt: &Receipt) -> Replayed {
    let mut engine = Engine::new(counting(Speed::Fast), EngineSettings::default()).unwrap();
    let tokenizer = text("").tokenizer;
    let grammar = receipt.request.constraint.as_ref().map(|constraint| {
        let compiler = GrammarCompiler::new(&tokenizer, 257, &receipt.request.eos).unwrap();
        compiler.compile(&constraint.to_constraint().unwrap()).unwrap()
    });
    receipt::replay(&mut engine, receipt, Some(&tokenizer), grammar, &Cancel::new()).unwrap()
}

/// Returns the answer of the last chunk of a stream, which has its receipts.
fn last_chunk(body: &str) -> Value {
    let events = events(body);
    assert_eq!(events.last(), Some(&"[DONE]"));
    serde_json::from_str(events[events.len() - 2]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_with_receipts_are_made_again() {
    let (server, key) = signing().await;
    let schema =
        json!({ "type": "json_schema", "json_schema": { "name": "a", "schema": { "enum": ["xy"] } } });
    let mut reasons = Vec::new();
    for (more, count) in [
        (json!({ "temperature": 0 }), 1),
        (json!({ "seed": 9_007_199_254_740_993u64, "temperature": 1.5, "top_p": 0.9, "n": 2 }), 2),
        (json!({ "presence_penalty": 1.5, "logit_bias": { "98": -100, "99": 2.5 }, "temperature": 1.1 }), 1),
        (json!({ "temperature": 0, "stop": ["de", "gh"], "speculate": true }), 1),
        (json!({ "temperature": 0, "regex": "[a-c]{3}z?" }), 1),
        (json!({ "temperature": 0, "response_format": schema }), 1),
        (json!({ "temperature": 0, "max_tokens": null, "prompt": "x", "content": "x" }), 1),
    ] {
        for path in ["/v1/completions", "/v1/chat/completions"] {
            let mut body = json!({ "receipt": true, "max_tokens": 8 });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let content = body.as_object_mut().unwrap().remove("content").unwrap_or("ab".into());
            if path.contains("chat") {
                body.as_object_mut().unwrap().remove("prompt");
                body["messages"] = json!([{ "role": "user", "content": content }]);
            } else {
                body["prompt"] = content;
            }
            let whole = server.ask(path, &body).await;
            body["stream"] = true.into();
            let (_, stream) = server.post(path, &body).await;
            let chunk = last_chunk(&stream);
            assert_eq!(chunk["choices"], json!([]));
            for answer in [whole, chunk] {
                let found = receipts(&answer);
                assert_eq!((found.len(), answer.get("receipts").is_some()), (count, count > 1));
                for receipt in found {
                    receipt.verify(&key).unwrap();
                    assert_eq!((receipt.model.as_str(), receipt.target.as_str()), ("scripted", "script"));
                    assert_eq!(receipt.bundle, Digest::of(b"scripted"));
                    assert_eq!(replayed(&receipt), Replayed::Equal, "{path} {more}: {answer}");
                    reasons.push(receipt.answer.finish_reason);
                }
            }
        }
    }
    for reason in [StopReason::Length, StopReason::Stop, StopReason::Eos] {
        assert!(reasons.contains(&reason), "{reason} is among {reasons:?}");
    }
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_receipts_do_not_hold() {
    let (server, key) = signing().await;
    let body = json!({ "prompt": "ab", "temperature": 0, "max_tokens": 4, "receipt": true });
    let answer = server.ask("/v1/completions", &body).await;
    let mut changed = answer.clone();
    changed["receipt"]["request"]["max_tokens"] = 5.into();
    let changed = receipts(&changed).remove(0);
    assert!(changed.verify(&key).is_err());
    assert_eq!(
        replayed(&changed),
        Replayed::Token { index: 4, found: Some(u32::from(b'g')), expected: None }
    );
    assert_eq!(answer["receipt"]["answer"]["tokens"], json!([99, 100, 101, 102]));

    // Nobody else has one, and a server without a key signs none.
    let without = server.ask("/v1/completions", &json!({ "prompt": "ab", "max_tokens": 4 })).await;
    assert!(without.get("receipt").is_none());
    let (status, text) = server.post("/v1/completions", &json!({ "prompt": "a", "receipt": "yes" })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("receipt: invalid type: string \\\"yes\\\", expected a boolean"), "{text}");
    let plain = Server::start(Speed::Fast).await;
    let found = receipts(&plain.ask("/v1/completions", &body).await).remove(0);
    assert!(!found.is_signed());
    assert_eq!(replayed(&found), Replayed::Equal);
}
