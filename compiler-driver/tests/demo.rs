//! The demo model: what Hugging Face says to five prompts is what comes out here, as tokens and as text.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod real;

use std::fs;

use mlxcel_compiler_driver::{Precision, Request};
use mlxcel_runtime::Tokenizer;
use real::{Built, built, greedy, models, request};
use serde::Deserialize;

/// `expected.json`.
#[derive(Deserialize)]
struct Expected {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    prompt: String,
    prompt_tokens: Vec<u32>,
    tokens: Vec<u32>,
    text: String,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(models().join("demo/expected.json")).unwrap();
    let Expected { cases } = serde_json::from_str(&text).unwrap();
    assert_eq!(cases.len(), 5);
    assert!(cases.iter().all(|case| case.tokens.len() == 48 && !case.text.is_empty()));
    cases
}

fn demo(precision: Precision) -> Built {
    built(&Request { precision, ..request(&models().join("demo"), &["cpu"]) })
}

#[test]
fn it_says_what_hugging_face_says() {
    let built = demo(Precision::F32);
    let tokenizer = Tokenizer::of_bundle(&built.bundle).unwrap();
    let mut session = built.session("auto").unwrap();
    for case in cases() {
        let prompt = tokenizer.encode(&case.prompt, true).unwrap();
        assert_eq!(prompt, case.prompt_tokens, "{}", case.prompt);
        session.rewind(0).unwrap();
        let found = greedy(&mut *session, &prompt, case.tokens.len()).unwrap().tokens;
        assert_eq!(found, case.tokens, "{}", case.prompt);

        let mut stream = tokenizer.stream(&prompt, &[]).unwrap();
        let mut text = String::new();
        for token in found {
            text += &stream.push(token).unwrap().text;
        }
        text += &stream.finish().unwrap().text;
        assert_eq!(text, case.text);
    }
}

#[test]
fn in_bf16_it_differs_by_rounding_only() {
    let (exact, rounded) = (demo(Precision::F32), demo(Precision::Bf16));
    assert_eq!(rounded.bundle.manifest().plan.precision, "bf16");
    let mut exact = exact.session("local-task").unwrap();
    let mut rounded = rounded.session("local-task").unwrap();
    for case in cases() {
        // Along Hugging Face's answer, so that one close choice does not make two texts of it.
        let (mut logits, mut worst, mut agreed) = (Vec::new(), 0_f32, 0);
        for session in [&mut exact, &mut rounded] {
            session.rewind(0).unwrap();
            let mut next = session.prefill(&case.prompt_tokens).unwrap();
            for &token in &case.tokens {
                logits.push(session.logits().unwrap());
                agreed += usize::from(next == token);
                next = session.decode_step(token).unwrap();
            }
        }
        let (exact, rounded) = logits.split_at(case.tokens.len());
        for (a, b) in exact.iter().flatten().zip(rounded.iter().flatten()) {
            assert!(b.is_finite());
            worst = worst.max((a - b).abs());
        }
        // Logits are up to 20, bf16 has eight bits, and most roundings cancel out.
        assert!(worst < 0.2, "a logit differs by {worst} after `{}`", case.prompt);
        // All 48 in f32, and nearly all in bf16: the least gap between two logits is below 0.01.
        assert!(agreed >= 48 + 46, "{agreed} of 96 after `{}`", case.prompt);
    }
}
