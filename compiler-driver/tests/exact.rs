//! Targets that are marked as exact: the logits of a request have the same bits alone and among others, whatever the chunks
//! of its prompt, the pages, the drafts and the threads.

use std::path::Path;

use crate::{
    answers::{Loaded, engine, on},
    real::{Built, built, fixtures, in_pieces, is_full, models, request},
};
use mlxcel_artifacts::{Machine, entry::PAGE};
use mlxcel_compiler_driver::{Float, Precision, Quant, Request};
use mlxcel_runtime::{
    CacheSize, LoadOptions, ModelRunner, Request as Prompt,
    engine::{EventKind, RequestId, Speculation},
    model::{Batch, SequenceRows},
};

/// Sequences side by side.
const BATCHES: [usize; 4] = [1, 2, 5, 16];

/// Rows that a prompt has in a call.
const CHUNKS: [usize; 4] = [1, 7, 32, 512];

/// Tokens that each sequence generates.
const ANSWER: usize = 6;

/// The answer to a prompt, and the bits of the logits before each of its tokens.
#[derive(Clone, PartialEq)]
struct Answer {
    tokens: Vec<u32>,
    bits: Vec<Vec<u32>>,
}

/// A sequence on its way.
struct Sequence {
    text: Vec<u32>,
    computed: usize,
    pages: Vec<u32>,
    answer: Answer,
}

/// Returns a prompt of a length of its own. All lengths end within a page, and some are longer than two calls of 64 rows.
fn prompt(index: usize, vocab: usize) -> Vec<u32> {
    let length = [150, 3, 70, 33, 129][index % 5] + index / 5;
    (0..length).map(|at| ((at * (7 + index) + index * index) % vocab) as u32).collect()
}

/// Answers prompts side by side, each with at most `chunk` rows in a call.
fn answers(model: &mut dyn ModelRunner, prompts: &[Vec<u32>], chunk: usize) -> Vec<Answer> {
    let limits = model.limits().clone();
    let (mut next_page, mut sequences) = (1, Vec::new());
    // The last sequence has the first pages.
    for prompt in prompts.iter().rev() {
        let count = (prompt.len() + ANSWER).div_ceil(PAGE) as u32;
        let pages = (next_page..next_page + count).rev().collect();
        next_page += count;
        let answer = Answer { tokens: vec![], bits: vec![] };
        sequences.push(Sequence { text: prompt.clone(), computed: 0, pages, answer });
    }
    sequences.reverse();
    assert!(limits.pools.iter().all(|pool| next_page as usize <= pool.pages + 1), "all sequences fit");
    loop {
        let going: Vec<usize> =
            (0..sequences.len()).filter(|&index| sequences[index].answer.tokens.len() < ANSWER).collect();
        if going.is_empty() {
            return sequences.into_iter().map(|sequence| sequence.answer).collect();
        }
        // The smallest call for all of them, or the one that takes the most.
        let pending = |index: &usize| (sequences[*index].text.len() - sequences[*index].computed).min(chunk);
        let wanted: usize = going.iter().map(pending).sum();
        let sizes = &limits.steps;
        let fits = |size: &usize| sizes[*size].rows >= wanted && sizes[*size].sequences >= going.len();
        let size = (0..sizes.len()).find(fits).unwrap_or(sizes.len() - 1);
        let (mut left, mut rows) = (sizes[size].rows, Vec::new());
        for &index in going.iter().take(sizes[size].sequences) {
            let count = pending(&index).min(left);
            left -= count;
            let Sequence { text, computed, pages, .. } = &sequences[index];
            let end = computed + count;
            let selected = if end == text.len() { vec![count - 1] } else { vec![] };
            let tokens = text[*computed..end].to_vec();
            let pages = vec![pages.as_slice(); limits.pools.len()];
            if count > 0 {
                rows.push((index, SequenceRows { tokens, start: *computed, pages, selected }));
            }
        }
        let (ran, rows): (Vec<usize>, Vec<SequenceRows<'_>>) = rows.into_iter().unzip();
        let counts: Vec<_> = rows.iter().map(|rows| (rows.tokens.len(), rows.selected.len())).collect();
        let mut best = model.step(&Batch { size, sequences: rows }).unwrap().into_iter().enumerate();
        for (index, (count, selected)) in ran.into_iter().zip(counts) {
            let sequence = &mut sequences[index];
            sequence.computed += count;
            if selected > 0 {
                let (row, best) = best.next().unwrap();
                let bits = model.logits(row).unwrap().into_iter().map(f32::to_bits).collect();
                sequence.answer.bits.push(bits);
                sequence.answer.tokens.push(best.token);
                sequence.text.push(best.token);
            }
        }
    }
}

/// Returns an engine of so many threads, with room for all sequences. Without threads it is local-sync.
fn loaded(built: &Built, threads: Option<usize>) -> Loaded {
    let device = if threads.is_some() { "local-task" } else { "local-sync" };
    let options = LoadOptions { threads, cache: CacheSize::Sequences(16), ..on(device) };
    engine(&built.bundle, None, &options).unwrap()
}

/// The answers of an engine.
#[derive(Default)]
struct Found {
    /// For each request and each of its tokens, all ids with the bits of their log-probabilities.
    logprobs: Vec<Vec<Vec<(u32, u32)>>>,
    /// Tokens of prompts that were not run, and drafts that are part of answers.
    cached: usize,
    accepted: usize,
}

/// Returns the engine's answers to requests that arrive a step apart.
fn answered(engine: &mut Loaded, requests: Vec<Prompt>) -> Found {
    let mut found = Found { logprobs: vec![vec![]; requests.len()], ..Found::default() };
    let mut requests = requests.into_iter();
    let mut ids: Vec<RequestId> = Vec::new();
    loop {
        ids.extend(requests.next().map(|request| engine.submit(request).unwrap()));
        if !engine.step() {
            return found;
        }
        while let Some(event) = engine.next_event() {
            match event.kind {
                EventKind::Token { logprobs, .. } => {
                    let top = logprobs.map(|logprobs| logprobs.top).unwrap_or_default();
                    let bits = top.into_iter().map(|(id, logprob)| (id, logprob.to_bits())).collect();
                    found.logprobs[ids.iter().position(|id| *id == event.id).unwrap()].push(bits);
                }
                EventKind::Failed { error } => panic!("{error}"),
                EventKind::Finished { timings, .. } => {
                    found.cached += timings.cached_tokens;
                    found.accepted += timings.accepted;
                }
            }
        }
    }
}

/// The same with the engine: with pages of earlier requests and without, with drafts and without, alone and among others.
fn holds_in_the_engine(name: &str, engine: &mut Loaded) {
    let vocab = engine.limits().vocab;
    let request = |index: usize, speculate| Prompt {
        // Texts that repeat, so that drafts are accepted.
        prompt: prompt(index, vocab).into_iter().take(40).cycle().take(150 + index).collect(),
        max_tokens: 40,
        logprobs: Some(vocab),
        speculate,
        ..Prompt::default()
    };
    let drafts = Some(Speculation { ngram_min: 1, ..Speculation::default() });
    let alone: Vec<_> = (0..6)
        .map(|index| {
            engine.clear_prefix_cache();
            answered(engine, vec![request(index, None)]).logprobs.remove(0)
        })
        .collect();
    for (speculate, clears) in [(None, false), (drafts, false), (drafts, true)] {
        if clears {
            engine.clear_prefix_cache();
        }
        let found = answered(engine, (0..6).map(|index| request(index, speculate)).collect());
        let drafting = speculate.is_some();
        let what = format!("{name} in the engine: drafts {drafting}, pages of earlier requests {}", !clears);
        assert!(found.logprobs == alone, "{what}");
        assert_eq!((found.accepted > 0, found.cached > 0), (drafting, !clears), "{what}");
    }
}

fn holds(model: &Path, precision: Precision, quant: Quant, target: &str) {
    let built = built(&Request { precision, quant, ..request(model, &[target]) });
    let name = format!("{} in {precision:?} {quant:?} for {target}", model.display());
    let serving = built.bundle.manifest().targets[target].serving.as_ref().unwrap();
    if !serving.exact {
        let features = Machine::host().cpu_features;
        assert!(!features.contains("avx2"), "{name}: this machine has kernels, which are exact");
        return;
    }
    let mut first = loaded(&built, Some(1));
    let vocab = first.limits().vocab;
    let prompts: Vec<Vec<u32>> = (0..16).map(|index| prompt(index, vocab)).collect();
    let alone: Vec<Answer> = prompts
        .iter()
        .map(|prompt| answers(first.runner(), std::slice::from_ref(prompt), 512).remove(0))
        .collect();
    for threads in [Some(1), Some(2), None] {
        let mut engine = loaded(&built, threads);
        for (sequences, chunk) in BATCHES.iter().flat_map(|&b| CHUNKS.map(|chunk| (b, chunk))) {
            let found = answers(engine.runner(), &prompts[..sequences], chunk);
            let same = found.iter().zip(&alone).filter(|(a, b)| a == b).count();
            assert_eq!(
                same, sequences,
                "{name}: {threads:?} threads, {sequences} sequences, chunks of {chunk}"
            );
        }
        for pieces in [&[1, 33, 1, 80][..], &[149, 1]] {
            let found = in_pieces(engine.runner(), &prompts[0], pieces).unwrap();
            let found: Vec<u32> = found.into_iter().map(f32::to_bits).collect();
            assert!(found == alone[0].bits[0], "{name}: {threads:?} threads, pieces of {pieces:?}");
        }
        holds_in_the_engine(&name, &mut engine);
    }
}

/// The instruction sets whose kernels this machine runs, by the targets that use them.
fn targets() -> Vec<&'static str> {
    let features = Machine::host().cpu_features;
    let v3 = features.contains("avx512vl").then_some("cpu-x86-64-v3");
    std::iter::once("cpu").chain(v3).collect()
}

/// The demo in a format, with the kernels of every instruction set, or by default those of the best one and where `both`.
fn of_the_demo(float: Float, quant: Quant, both: bool) {
    for target in targets().into_iter().filter(|&target| target == "cpu" || both || is_full()) {
        holds(&models().join("demo"), Precision::Float(float), quant, target);
    }
}

#[test]
fn of_the_demo_in_f32() {
    of_the_demo(Float::F32, Quant::None, false);
}

#[test]
fn of_the_demo_in_bf16() {
    of_the_demo(Float::Bf16, Quant::None, true);
}

#[test]
fn of_the_demo_in_8_bits() {
    of_the_demo(Float::Bf16, Quant::Q8, false);
}

#[test]
fn of_the_demo_in_4_bits() {
    of_the_demo(Float::Bf16, Quant::Q4, true);
}

fn of_a_fixture(name: &str) {
    holds(&fixtures().join(name), Precision::Float(Float::F32), Quant::None, "cpu");
}

/// Biases, learned positions and layer norms.
#[test]
fn of_gpt2() {
    of_a_fixture("gpt2-hub");
}

/// A mixture, sinks and windows.
#[test]
fn of_gpt_oss() {
    of_a_fixture("gpt-oss-hub");
}

/// Caps.
#[test]
fn of_gemma2() {
    of_a_fixture("gemma2-hub");
}
