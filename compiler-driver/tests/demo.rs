//! The demo model: its answers to five prompts equal those of Hugging Face transformers, as tokens and as text.

#[path = "../../runtime/examples/generate.rs"]
#[allow(dead_code, reason = "it has a main function")]
mod generate;

use std::fs;

use crate::{
    answers::{Loaded, engine, greedy, on},
    real::{Built, built, models, request},
};
use mlxcel_artifacts::Bundle;
use mlxcel_compiler_driver::{Float, Precision, Request, WeightSource};
use mlxcel_runtime::{
    SelfTestResult, Tokenizer, Weights, record_generation, replay_generation, self_test_prompts,
};
use safetensors::SafeTensors;
use serde::Deserialize;

/// The file `expected.json`.
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
fn answers_equal_those_of_transformers() {
    let built = demo(Precision::Float(Float::F32));
    let tokenizer = Tokenizer::from_bundle(&built.bundle).unwrap();
    let mut engine = built.engine("auto").unwrap();
    for case in cases() {
        let prompt = tokenizer.encode(&case.prompt, true).unwrap();
        assert_eq!(prompt, case.prompt_tokens, "{}", case.prompt);
        let found = greedy(&mut engine, &prompt, case.tokens.len()).unwrap().tokens;
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
fn the_example_of_the_runtime_continues_a_prompt() {
    let built = demo(Precision::Float(Float::F32));
    let Case { prompt, tokens, text, .. } = &cases()[0];
    assert_eq!(generate::generate(built.bundle.path(), prompt, tokens.len()).unwrap(), *text);
}

#[test]
fn bf16_differs_by_rounding_only() {
    let (exact, rounded) = (demo(Precision::Float(Float::F32)), demo(Precision::Float(Float::Bf16)));
    assert_eq!(rounded.bundle.manifest().model_spec().unwrap().precision, Float::Bf16);
    let mut exact = exact.engine("local-task").unwrap();
    let mut rounded = rounded.engine("local-task").unwrap();
    for case in cases() {
        // Follows the recorded answer, so that one close choice does not lead to another text.
        let (prompt, answer) = (&case.prompt_tokens, &case.tokens);
        let text = [prompt.as_slice(), &answer[..answer.len() - 1]].concat();
        let logits = |engine: &mut Loaded| engine.score(&text, prompt.len() - 1).unwrap();
        let (exact, rounded) = (logits(&mut exact), logits(&mut rounded));
        let best = |logits: &Vec<f32>| {
            (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
        };
        let pairs = exact.iter().chain(&rounded).zip(answer.iter().chain(answer));
        let agreed = pairs.filter(|(logits, token)| best(logits) == **token).count();
        let mut worst = 0_f32;
        for (a, b) in exact.iter().flatten().zip(rounded.iter().flatten()) {
            assert!(b.is_finite());
            worst = worst.max((a - b).abs());
        }
        // Logits reach 20, bf16 has 8 bits, and most rounding errors cancel out.
        assert!(worst < 0.2, "a logit differs by {worst} after `{}`", case.prompt);
        // All 48 tokens agree in f32, and nearly all in bf16: the smallest gap between two logits is below 0.01.
        assert!(agreed >= 48 + 46, "{agreed} of 96 after `{}`", case.prompt);
    }
}

#[test]
fn a_self_test_detects_changed_weights() {
    let demo = models().join("demo");
    let without = built(&Request { weights: WeightSource::None, ..request(&demo, &["cpu"]) });
    let given = |folder: &std::path::Path| Weights::open(folder).unwrap();
    let mut trusted = engine(&without.bundle, Some(given(&demo)), &on("local-task")).unwrap();
    let (vocab, context) = (trusted.limits().vocab, trusted.limits().context);
    let smallest = 16;
    let prompts = self_test_prompts(vocab, context, smallest, 24)
        .into_iter()
        .chain(cases().into_iter().map(|c| c.prompt_tokens));
    let replays: Vec<_> =
        prompts.map(|prompt| record_generation(&mut trusted, &prompt, 24).unwrap()).collect();
    let recorded = without.bundle.clone().with_replays(replays.clone()).unwrap();
    assert_eq!(Bundle::open(recorded.path()).unwrap().manifest().replays, replays);
    // The recorded tokens equal those of transformers.
    for (replay, case) in replays[replays.len() - 5..].iter().zip(cases()) {
        assert_eq!(replay.tokens, case.tokens[..24]);
    }

    for device in ["local-task", "local-sync"] {
        let mut engine = engine(&recorded, Some(given(&demo)), &on(device)).unwrap();
        for recorded in &recorded.manifest().replays {
            assert_eq!(replay_generation(&mut engine, recorded).unwrap(), SelfTestResult::Passed);
        }
    }

    // Negates a matrix of the last layer.
    let changed = tempfile::tempdir().unwrap();
    let bytes = fs::read(demo.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let name = tensors
        .names()
        .into_iter()
        .filter(|name| name.ends_with("down_proj.weight"))
        .max()
        .unwrap()
        .to_owned();
    let start = tensors.tensor(&name).unwrap().data().as_ptr() as usize - bytes.as_ptr() as usize;
    let length = tensors.tensor(&name).unwrap().data().len();
    let width = tensors.tensor(&name).unwrap().dtype().bitsize() / 8;
    let mut other = bytes.clone();
    // The sign is the highest bit of an element's last byte.
    other[start..start + length].iter_mut().skip(width - 1).step_by(width).for_each(|byte| *byte ^= 0x80);
    fs::write(changed.path().join("model.safetensors"), other).unwrap();
    let mut other = engine(&recorded, Some(given(changed.path())), &on("local-task")).unwrap();
    let first = recorded.manifest().replays.iter().find_map(|recorded| {
        match replay_generation(&mut other, recorded).unwrap() {
            SelfTestResult::TokenMismatch { index, found, expected, .. } => {
                Some((index, found, expected, recorded))
            }
            _ => None,
        }
    });
    let (index, found, expected, replayed) = first.expect("nothing diverged");
    assert_eq!(replayed.tokens[index], expected);
    assert_ne!(found, expected);
    // The reported index is the first difference.
    let tokens = greedy(&mut other, &replayed.prompt, index + 1).unwrap().tokens;
    assert_eq!((&tokens[..index], tokens[index]), (&replayed.tokens[..index], found));
}
