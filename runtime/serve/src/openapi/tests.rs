//! The document against what the server does.

mod validator;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::validator::allows;
use super::document;
use crate::api::{
    chat::ChatRequest,
    completion::CompletionRequest,
    embeddings::EmbeddingRequest,
    error::ApiError,
    fields::asked,
    reload::ReloadRequest,
    tokens::{DetokenizeRequest, TokenizeRequest},
};

/// A request: its schema, a body that is accepted, and how it is parsed.
type Case = (&'static str, Value, fn(&[u8]) -> Result<(), ApiError>);

fn cases() -> [Case; 6] {
    let message = json!({ "role": "user", "content": "a" });
    [
        ("ChatRequest", json!({ "messages": [message] }), |body| ChatRequest::parse(body).map(drop)),
        ("CompletionRequest", json!({ "prompt": "a" }), |body| CompletionRequest::parse(body).map(drop)),
        ("EmbeddingRequest", json!({ "input": "a" }), |body| EmbeddingRequest::parse(body).map(drop)),
        ("TokenizeRequest", json!({ "content": "a" }), |body| TokenizeRequest::parse(body).map(drop)),
        ("ReloadRequest", json!({}), |body| ReloadRequest::parse(body).map(drop)),
        ("DetokenizeRequest", json!({ "tokens": [1] }), |body| DetokenizeRequest::parse(body).map(drop)),
    ]
}

/// Values that some fields take and others refuse.
fn probes() -> Vec<Value> {
    let probes: Vec<Value> = serde_json::from_str(include_str!("tests/probes.json")).unwrap();
    // Lists around the limits of their lengths.
    let lists = [64, 65, 129, 2049].map(|count| json!(vec!["a"; count]));
    probes.into_iter().chain(lists).collect()
}

#[test]
fn every_field_that_is_parsed_is_documented_and_no_other() {
    let document = document(false, &[]);
    for (name, body, parse) in cases() {
        asked();
        parse(body.to_string().as_bytes()).unwrap();
        let properties = document["components"]["schemas"][name]["properties"].as_object().unwrap();
        let documented: BTreeSet<String> = properties.keys().cloned().collect();
        assert_eq!(asked(), documented, "{name}");
    }
}

#[test]
fn what_the_document_refuses_is_refused_and_what_it_allows_is_no_wrong_field() {
    let document = document(false, &[]);
    for (name, body, parse) in cases() {
        let schema = &document["components"]["schemas"][name];
        assert!(allows(&document, schema, &body), "{name}");
        for (field, of_field) in schema["properties"].as_object().unwrap() {
            let (mut allowed, mut refused) = (0, 0);
            for probe in probes() {
                let mut body = body.clone();
                body[field] = probe.clone();
                let found = parse(body.to_string().as_bytes());
                if allows(&document, schema, &body) {
                    allowed += 1;
                    // A field may need another one, and only that is no part of its schema.
                    let message = found.err().map(|error| error.to_json()["error"]["message"].to_string());
                    let is_known =
                        |message: &String| NEEDS_OTHERS.iter().any(|known| message.contains(known));
                    assert!(message.as_ref().is_none_or(is_known), "{name}.{field} = {probe}: {message:?}");
                } else {
                    refused += 1;
                    assert!(found.is_err(), "{name}.{field} = {probe} is accepted");
                }
            }
            assert!(allowed > 0, "no probe is for {name}.{field}");
            let is_free = of_field["anyOf"][0]["description"] == "Changes nothing.";
            assert!(refused > 0 || is_free, "{name}.{field} refuses nothing");
        }
    }
}

/// Parts of messages about fields that are right, beside others that are not.
const NEEDS_OTHERS: [&str; 4] =
    ["given without tools", "expected it with", "expected them with", "as many as n"];

#[test]
fn every_route_is_documented_and_every_path_is_routed() {
    let document = document(false, &[]);
    let documented: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let routes =
        include_str!("../routes.rs").split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
    // What is below a folder is not described: the files of pages, and what is no path.
    let routed: BTreeSet<&str> = routes.filter(|path| !path.contains("{*")).collect();
    assert_eq!(documented, routed);
}

#[test]
fn every_reference_is_to_something() {
    fn check(value: &Value, document: &Value) {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
        }
        if let (Some(required), Some(properties)) = (value["required"].as_array(), value.get("properties")) {
            let names: BTreeSet<&str> = required.iter().map(|name| name.as_str().unwrap()).collect();
            assert_eq!(names.len(), required.len(), "{required:?}");
            assert!(names.iter().all(|name| properties.get(name).is_some()), "{required:?}");
        }
        let (fields, items) = (value.as_object(), value.as_array());
        let values = fields.into_iter().flat_map(|fields| fields.values()).chain(items.into_iter().flatten());
        values.for_each(|value| check(value, document));
    }
    for needs_key in [false, true] {
        let document = document(needs_key, &["a", "b"]);
        check(&document, &document);
        let security = &document["paths"]["/v1/models"]["get"]["security"];
        assert_eq!(security.is_null(), !needs_key);
    }
}
