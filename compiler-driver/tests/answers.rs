//! Engines over bundles, and the comparison of their answers with recorded ones. The compiler is not needed.
//!
//! `runtime/tests/answers.rs` has this file too, so that CPUs which compile no bundles are compared in the same way.
#![allow(dead_code, reason = "each test target uses its own part")]

use std::{fs, ops::ControlFlow, path::Path};

use mlxcel_artifacts::{Bundle, report};
use mlxcel_runtime::{
    CacheSize, Cancel, DeviceSpec, Encoder, Engine, EngineSettings, Error, Generation, LoadOptions,
    ModelRunner, Request as Prompt, Weights,
    engine::{EventKind, RequestId, Speculation},
    load,
};
use serde::{Deserialize, de::DeserializeOwned};

/// By how much a number of an embedding may differ, as a part of the embedding's length.
pub(crate) const EMBEDDING_TOLERANCE: f32 = 1e-5;
/// The same where sums are made in other orders and GELU's inputs are large, on purpose: see the case `bert-f16`.
const LOOSE_EMBEDDING_TOLERANCE: f32 = 1e-4;

/// By how much a logit may differ: other orders of addition differ by less than 1e-4, of these sizes.
const LOGIT_TOLERANCE: f32 = 2e-3;

/// An engine over a loaded bundle.
pub(crate) type Loaded = Engine<Box<dyn ModelRunner>>;

/// What Hugging Face answers to one prompt.
#[derive(Debug, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) prompt: Vec<u32>,
    /// The greedy tokens.
    pub(crate) tokens: Vec<u32>,
    /// For each of them the five best ids with their logits, best first.
    pub(crate) best: Vec<Vec<(u32, f32)>>,
}

impl Recorded {
    /// Every prompt of an `expected.json`.
    pub(crate) fn all_in(path: &Path) -> Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        struct Expected {
            prompts: Vec<Recorded>,
        }
        let Expected { prompts } = read(path)?;
        let whole = |r: &Self| r.tokens.len() == 40 && r.best.len() == 40;
        if prompts.is_empty() || !prompts.iter().all(whole) {
            let path = path.display();
            return Err(format!("{path}: expected prompts with 40 tokens and 40 steps of logits each"));
        }
        Ok(prompts)
    }

    /// Returns how many tokens come before the first of which the best two logits are nearer than `near`.
    pub(crate) fn certain(&self, near: f32) -> usize {
        let gap = |best: &Vec<(u32, f32)>| best[0].1 - best[1].1;
        self.best.iter().position(|best| gap(best) < near).unwrap_or(self.tokens.len())
    }
}

/// Reads a file of JSON.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let fail = |reason: String| format!("{}: {reason}", path.display());
    let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| fail(error.to_string()))
}

/// An engine over a bundle.
pub(crate) fn engine(
    bundle: &Bundle,
    weights: Option<Weights>,
    options: &LoadOptions,
) -> Result<Loaded, Error> {
    Engine::new(load(bundle, weights, options)?, EngineSettings::default())
}

/// Two threads, so that they meet on every machine, and room for eight sequences.
pub(crate) fn on(device: &str) -> LoadOptions {
    let device: DeviceSpec = device.parse().unwrap();
    LoadOptions { device, threads: Some(2), cache: CacheSize::Sequences(8), ..LoadOptions::default() }
}

/// The `count` greedy tokens after `prompt`, with no regard to an end of text.
pub(crate) fn greedy(engine: &mut Loaded, prompt: &[u32], count: usize) -> Result<Generation, Error> {
    let request = Prompt { prompt: prompt.to_vec(), max_tokens: count, ..Prompt::default() };
    engine.generate(request, &Cancel::new(), &mut |_| ControlFlow::Continue(()))
}

/// A failure, in words.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(report(&error))
    }
}

impl Failure {
    fn unless(holds: bool, words: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(words())) }
    }
}

/// The tokens are the recorded ones, prompt after prompt, with no page of an earlier one.
pub(crate) fn tokens(engine: &mut Loaded, prompts: &[&Recorded]) -> Result<(), Failure> {
    for recorded in prompts {
        engine.clear_prefix_cache();
        let found = greedy(engine, &recorded.prompt, recorded.tokens.len())?.tokens;
        same(recorded.prompt.len(), &found, &recorded.tokens)?;
    }
    Ok(())
}

/// The tokens are the recorded ones, and so are the best logits of every step.
pub(crate) fn tokens_and_logits(engine: &mut Loaded, recorded: &Recorded) -> Result<(), Failure> {
    tokens(engine, &[recorded])?;
    engine.clear_prefix_cache();
    let Recorded { prompt, tokens, best } = recorded;
    let text = [prompt.as_slice(), &tokens[..tokens.len() - 1]].concat();
    let all = engine.score(&text, prompt.len() - 1)?;
    for (step, (mut logits, best)) in all.into_iter().zip(best).enumerate() {
        let at = || format!("after a prompt of {} and {step} tokens", prompt.len());
        for &(id, expected) in best {
            let logit = std::mem::replace(&mut logits[id as usize], f32::NEG_INFINITY);
            let near = (logit - expected).abs() <= LOGIT_TOLERANCE;
            Failure::unless(near, || format!("{}: logit {id} is {logit}, expected {expected}", at()))?;
        }
        let rest = logits.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let least = best.last().unwrap().1;
        let below = rest <= least + LOGIT_TOLERANCE;
        Failure::unless(below, || format!("{}: another logit is {rest}, expected at most {least}", at()))?;
    }
    Ok(())
}

/// Pages of other texts are read where these begin alike, and nothing is left of where they go on.
pub(crate) fn after_others(engine: &mut Loaded, recorded: &Recorded) -> Result<(), Failure> {
    const SHARED: usize = 150;
    let prompt = &recorded.prompt;
    Failure::unless(prompt.len() > SHARED + 64, || format!("a prompt of {} is short", prompt.len()))?;
    engine.clear_prefix_cache();
    let other = [&prompt[..SHARED], &[1; 50]].concat();
    greedy(engine, &other, 3)?;
    for (hit, why) in [(128, "of a text that goes on in another way"), (prompt.len() - 64, "of itself")] {
        let found = greedy(engine, prompt, recorded.tokens.len())?;
        same(prompt.len(), &found.tokens, &recorded.tokens)?;
        let cached = found.timings.cached_tokens;
        Failure::unless(cached >= hit, || format!("{cached} tokens were cached {why}, expected {hit}"))?;
    }
    Ok(())
}

/// Requests that arrive at once have the first tokens of the recorded ones, as many as are said for each.
pub(crate) fn side_by_side(engine: &mut Loaded, prompts: &[(&Recorded, usize)]) -> Result<(), Failure> {
    let mut running = Vec::new();
    for &(recorded, count) in prompts {
        let prompt = recorded.prompt.clone();
        let request = Prompt { prompt, max_tokens: count, ..Prompt::default() };
        running.push((engine.submit(request)?, Vec::new()));
    }
    while engine.step() {}
    while let Some(event) = engine.next_event() {
        let (_, found) = running.iter_mut().find(|(id, _)| *id == event.id).unwrap();
        match event.kind {
            EventKind::Token { token, .. } => found.push(token),
            EventKind::Finished { .. } => {}
            EventKind::Failed { error } => return Err(error.into()),
        }
    }
    for ((recorded, count), (_, found)) in prompts.iter().zip(running) {
        same(recorded.prompt.len(), &found, &recorded.tokens[..*count])?;
    }
    Ok(())
}

/// Requests that arrive at random, up to eight at a time, some with drafts, have the recorded tokens.
pub(crate) fn together(engine: &mut Loaded, prompts: &[&Recorded]) -> Result<(), Failure> {
    const AT_A_TIME: usize = 8;
    engine.clear_prefix_cache();
    let mut random = 1_u32;
    let mut below = |most: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 16) % most
    };
    let mut waiting: Vec<&Recorded> = prompts.iter().copied().cycle().take(prompts.len().max(10)).collect();
    let mut running: Vec<(RequestId, &Recorded, Vec<u32>)> = Vec::new();
    while !(waiting.is_empty() && running.is_empty()) {
        while running.len() < AT_A_TIME && below(3) > 0 {
            let Some(recorded) = waiting.pop() else { break };
            let request = Prompt {
                prompt: recorded.prompt.clone(),
                max_tokens: recorded.tokens.len(),
                speculate: (below(2) == 0).then(Speculation::default),
                ..Prompt::default()
            };
            running.push((engine.submit(request)?, recorded, Vec::new()));
        }
        engine.step();
        while let Some(event) = engine.next_event() {
            let index = running.iter().position(|(id, ..)| *id == event.id).unwrap();
            match event.kind {
                EventKind::Token { token, .. } => running[index].2.push(token),
                EventKind::Finished { .. } => {
                    let (_, recorded, found) = running.remove(index);
                    same(recorded.prompt.len(), &found, &recorded.tokens)?;
                }
                EventKind::Failed { error } => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn same(prompt: usize, found: &[u32], expected: &[u32]) -> Result<(), Failure> {
    Failure::unless(found == expected, || {
        format!("after a prompt of {prompt}:\n  found    {found:?}\n  expected {expected:?}")
    })
}

/// A text with its embedding.
#[derive(Debug, Deserialize)]
pub(crate) struct Text {
    pub(crate) tokens: Vec<u32>,
    pub(crate) embedding: Vec<f32>,
}

impl Text {
    /// Every text of an encoder's `expected.json`.
    pub(crate) fn all_in(path: &Path) -> Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        struct Expected {
            texts: Vec<Text>,
        }
        let Expected { texts } = read(path)?;
        if texts.is_empty() {
            return Err(format!("{}: found no text, expected at least one", path.display()));
        }
        Ok(texts)
    }
}

/// The largest difference, as a part of the expected one's length.
pub(crate) fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let length = expected.iter().map(|x| x * x).sum::<f32>().sqrt();
    let differences = found.iter().zip(expected).map(|(x, y)| (x - y).abs());
    // NaN is no small difference.
    differences.fold(0.0, |most: f32, x| if most.is_nan() || x <= most { most } else { x }) / length
}

/// By how much a number of a fixture's embedding may differ.
pub(crate) fn embedding_tolerance(fixture: &str) -> f32 {
    if fixture == "bert-f16" { LOOSE_EMBEDDING_TOLERANCE } else { EMBEDDING_TOLERANCE }
}

/// Every text alone, all at once, and backwards: nothing of one is left for the next or meets the one beside it.
pub(crate) fn holds(name: &str, encoder: &mut dyn Encoder, texts: &[Text], tolerance: f32) {
    let tokens: Vec<&[u32]> = texts.iter().map(|text| text.tokens.as_slice()).collect();
    let backwards: Vec<&[u32]> = tokens.iter().rev().copied().collect();
    let alone = tokens.chunks(1).flat_map(|one| encoder.embed(one).unwrap()).collect();
    let mut reversed = encoder.embed(&backwards).unwrap();
    reversed.reverse();
    for (how, found) in [("alone", alone), ("together", encoder.embed(&tokens).unwrap()), ("back", reversed)]
    {
        assert_eq!(found.len(), texts.len());
        for (found, Text { tokens, embedding }) in found.iter().zip(texts) {
            let distance = distance(found, embedding);
            let count = tokens.len();
            assert!(distance < tolerance, "{name}, {count} tokens {how}: {distance:e} from expected");
        }
    }
}
