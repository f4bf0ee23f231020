//! Receipts and replays over a scripted model.

use mlxcel_artifacts::{Cancel, Digest, SecretKey};
use serde_json::{Value, json};

use super::{
    document::{Maker, Receipt, RecordedAnswer},
    error::ReceiptError,
    read::parse,
    replay::{Replayed, replay},
    request::{RecordedRequest, TextRules},
};
use crate::{
    engine::{Engine, EngineSettings, Penalties, Request, Speculation, StopReason},
    sampling::Sampling,
    scripted::ScriptedModel,
    text::tokenizer::Tokenizer,
};

const VOCAB: usize = 12;

fn engine() -> Engine<ScriptedModel> {
    // Logits that are close to one another, so that samplers, biases and penalties choose differently.
    let model = ScriptedModel::of_tokens(200, VOCAB, |seen| {
        let last = *seen.last().unwrap_or(&0);
        (0..VOCAB as u32).map(|id| (((id * 7 + last * 5 + seen.len() as u32) % 11) as f32) / 4.0).collect()
    });
    Engine::new(model, EngineSettings::default()).unwrap()
}

/// A word for each token: `a` to `l`.
fn tokenizer() -> Tokenizer {
    let vocab: serde_json::Map<String, Value> =
        (0..VOCAB).map(|id| (char::from(b'a' + id as u8).to_string(), json!(id))).collect();
    let json = json!({ "version": "1.0", "decoder": { "type": "Fuse" },
        "model": { "type": "WordLevel", "unk_token": "a", "vocab": vocab } });
    Tokenizer::from_json(json.to_string().as_bytes()).unwrap()
}

/// Answers a request as a server does, and writes the receipt.
fn answer(request: Request, text: TextRules) -> Receipt {
    let mut engine = engine();
    let mut stream = tokenizer().stream(&request.prompt, &text.stop).unwrap();
    let recorded = RecordedRequest::new(&request, engine.limits().context, text, None);
    let generation = engine
        .generate(request, &Cancel::new(), &mut |token| match stream.push(token).unwrap().stopped {
            true => std::ops::ControlFlow::Break(()),
            false => std::ops::ControlFlow::Continue(()),
        })
        .unwrap();
    let answer = RecordedAnswer { tokens: generation.tokens, finish_reason: generation.stop_reason };
    let target = engine.device().target.clone();
    let maker = Maker { bundle: engine.limits().model, target, model: "scripted".into() };
    Receipt::new(maker, 1_764_000_000, recorded, answer)
}

fn replayed(receipt: &Receipt) -> Replayed {
    replay(&mut engine(), receipt, Some(&tokenizer()), None, &Cancel::new()).unwrap()
}

/// Returns the receipt that a text has.
fn parsed(text: &str) -> Result<Receipt, String> {
    parse(text.as_bytes()).map(|mut found| found.remove(0)).map_err(|error| error.to_string())
}

fn requests() -> Vec<(Request, TextRules)> {
    let base = Request { prompt: vec![1, 2, 3, 1, 2], max_tokens: 40, ..Request::default() };
    let sampling = Some(Sampling { temperature: 0.7, top_p: 0.9, seed: u64::MAX - 1, ..Sampling::default() });
    let penalties = Penalties { presence: 0.5, frequency: 0.25, repetition: 1.1 };
    let logit_bias = vec![(3, 0.1), (4, f32::NEG_INFINITY), (5, -100.0)];
    let stop =
        TextRules { stop: vec!["xx".into(), "l".into()], continues_prompt: true, ..TextRules::default() };
    vec![
        (base.clone(), TextRules::default()),
        (Request { sampling, ..base.clone() }, TextRules::default()),
        (Request { sampling, penalties, logit_bias, ..base.clone() }, TextRules::default()),
        (Request { speculate: Some(Speculation::default()), sampling, ..base.clone() }, stop),
        (Request { eos: vec![0, 7], ..base.clone() }, TextRules::default()),
        (Request { max_tokens: 1000, ..base }, TextRules::default()),
    ]
}

#[test]
fn receipts_are_found_in_saved_streams() {
    let (request, text) = requests().remove(0);
    let receipt = answer(request, text);
    let event = |data: &Value| format!("data: {data}\n\n");
    let parts = [event(&json!({ "choices": [{ "delta": {} }] })), event(&json!({ "receipts": [receipt] }))];
    let end = "data: [DONE]\n\n";
    assert_eq!(parsed(&format!(": ping\n\n{}{}{end}", parts[0], parts[1])), Ok(receipt));
    assert_eq!(parsed(&format!("{}{end}", parts[0])), Err(ReceiptError::Missing.to_string()));
}

#[test]
fn answers_are_made_again() {
    let mut reasons = Vec::new();
    for (request, text) in requests() {
        let receipt = answer(request, text);
        let written = json!({ "choices": [], "receipt": receipt }).to_string();
        let found = parsed(&written).unwrap();
        assert_eq!(found, receipt);
        assert_eq!(replayed(&found), Replayed::Equal, "{written}");
        reasons.push(receipt.answer.finish_reason);
    }
    for reason in [StopReason::Length, StopReason::Stop, StopReason::Eos, StopReason::Context] {
        assert!(reasons.contains(&reason), "{reason} is among {reasons:?}");
    }
}

#[test]
fn each_part_of_a_request_matters() {
    let (request, text) = requests().remove(2);
    let receipt = answer(request, text);
    let change = |change: &dyn Fn(&mut RecordedRequest)| {
        let Receipt { bundle, target, model, created, mut request, answer, .. } = receipt.clone();
        change(&mut request);
        replayed(&Receipt::new(Maker { bundle, target, model }, created, request, answer))
    };
    assert_eq!(change(&|_| {}), Replayed::Equal);
    for (name, found) in [
        ("prompt", change(&|request| request.prompt[4] = 3)),
        ("sampling", change(&|request| request.sampling = None)),
        ("penalties", change(&|request| request.penalties = Penalties::default())),
        ("logit_bias", change(&|request| request.logit_bias.clear())),
        ("eos", change(&|request| request.eos = (0..12).collect())),
        ("stop", change(&|request| request.text.stop = vec!["b".into(), "c".into(), "d".into()])),
    ] {
        assert!(matches!(found, Replayed::Token { .. } | Replayed::Reason { .. }), "{name}: {found:?}");
    }
}

#[test]
fn a_difference_has_a_place() {
    let (request, text) = requests().remove(0);
    let Receipt { bundle, target, model, request, answer, .. } = answer(request, text);
    let with = |tokens: Vec<u32>, finish_reason| {
        let maker = Maker { bundle, target: target.clone(), model: model.clone() };
        replayed(&Receipt::new(maker, 0, request.clone(), RecordedAnswer { tokens, finish_reason }))
    };
    let mut tokens = answer.tokens.clone();
    let right = tokens[30];
    tokens[30] = (right + 1) % 12;
    let expected = Replayed::Token { index: 30, found: Some(right), expected: Some(tokens[30]) };
    assert_eq!(with(tokens, StopReason::Length), expected);
    let cut = answer.tokens[..10].to_vec();
    let expected = Replayed::Token { index: 10, found: Some(answer.tokens[10]), expected: None };
    assert_eq!(with(cut, StopReason::Stop), expected);
    let expected = Replayed::Reason { found: StopReason::Length, expected: StopReason::Eos };
    assert_eq!(with(answer.tokens.clone(), StopReason::Eos), expected);
    let mut longer = answer.tokens.clone();
    longer.push(1);
    let expected = Replayed::Token { index: 40, found: None, expected: Some(1) };
    assert_eq!(with(longer, StopReason::Length), expected);
}

#[test]
fn signatures_hold_for_whatever_form_the_json_has() {
    let folder = tempfile::tempdir().unwrap();
    let [key, other] = ["one", "other"].map(|name| {
        let paths = ["key", "pub"].map(|extension| folder.path().join(name).with_extension(extension));
        let public = SecretKey::generate(&paths[0], &paths[1], None).unwrap();
        (SecretKey::open(&paths[0], || unreachable!("it has no password")).unwrap(), public)
    });
    let (request, text) = requests().remove(2);
    let receipt = answer(request, text).sign(&key.0).unwrap();
    // Keys in another order, with spaces.
    let value = serde_json::to_value(&receipt).unwrap();
    let reversed: serde_json::Map<String, Value> =
        value.as_object().unwrap().clone().into_iter().rev().collect();
    let pretty = serde_json::to_string_pretty(&reversed).unwrap();
    let found = parsed(&pretty).unwrap();
    assert_eq!(found.verify(&key.1).unwrap().key, key.0.id());
    let message = |receipt: &Receipt, key| {
        let error = receipt.verify(key).unwrap_err();
        mlxcel_artifacts::report(&error)
    };
    assert_eq!(
        message(&found, &other.1),
        format!(
            "error: the signature of the receipt does not hold: found one by the key {}, expected a signature of this \
             text by the key {}\nhint: the receipt was changed, or another server made it",
            key.0.id(),
            other.0.id()
        )
    );
    for (part, value) in [("created", json!(1)), ("target", json!("x")), ("model", json!("y"))] {
        let mut changed = reversed.clone();
        changed[part] = value;
        let found = parsed(&Value::Object(changed).to_string()).unwrap();
        assert!(message(&found, &key.1).contains("found one of another text, or a forged one"), "{part}");
    }
    let mut bad = reversed.clone();
    bad["signature"] = "x".into();
    let bad = parsed(&Value::Object(bad).to_string()).unwrap();
    assert!(message(&bad, &key.1).contains("found a text that is not minisign's"));
    let mut unsigned = reversed;
    unsigned.remove("signature");
    let unsigned = parsed(&Value::Object(unsigned).to_string()).unwrap();
    assert!(!unsigned.is_signed() && message(&unsigned, &key.1).contains("the receipt is not signed"));
    assert_eq!(format!("{:?}", key.0), format!("SecretKey(\"{}\")", key.0.id()));
}

#[test]
fn the_text_form_is_stable() {
    let request = Request {
        prompt: vec![1, 2],
        max_tokens: 2,
        sampling: Some(Sampling { temperature: 0.7, seed: 1 << 60, ..Sampling::default() }),
        logit_bias: vec![(4, f32::NEG_INFINITY), (5, 1.5)],
        ..Request::default()
    };
    let request = RecordedRequest::new(&request, 64, TextRules::default(), None);
    let maker = Maker { bundle: Digest::of(b"bundle"), target: "cpu".into(), model: "demo".into() };
    let answer = RecordedAnswer { tokens: vec![3, 4], finish_reason: StopReason::Length };
    let receipt = Receipt::new(maker, 7, request, answer);
    insta::assert_snapshot!(receipt.signed_text().unwrap(), @r#"
    mlxcel receipt
    {"version":1,"bundle":"blake3:41ee67d2cddda00309b8e6e72cac36f81439d04ad95077aeaf8dc159578bf286","target":"cpu","model":"demo","created":7,"request":{"prompt":[1,2],"context":64,"max_tokens":2,"eos":[],"text":{"stop":[],"continues_prompt":false,"special":[]},"sampling":{"temperature":0.7,"top_k":0,"top_p":1.0,"min_p":0.0,"seed":"1152921504606846976"},"penalties":{"presence":0.0,"frequency":0.0,"repetition":1.0},"logit_bias":[[4,"-inf"],[5,1.5]],"constraint":null,"speculate":null},"answer":{"tokens":[3,4],"finish_reason":"length"},"prompt_hash":"blake3:7ba5b071a43fd516032da086a85f651cd08704b30abed1b64a60ed0d931dca51","answer_hash":"blake3:fc6845020dabfb77e04708f056f265f9aa98a8d22d9b3babb1609f1ce077fc9d"}
    "#);
}
