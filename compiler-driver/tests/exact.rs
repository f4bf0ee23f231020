//! Targets that are marked as exact: logits are the same, bit for bit, however a prompt is cut and on any number of threads.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod real;

use std::path::{Path, PathBuf};

use mlxcel_artifacts::Machine;
use mlxcel_compiler_driver::{Float, Precision, Quant, Request};
use mlxcel_runtime::Session;
use real::{built, fixtures, models, request};

/// Tokens of the prompt: more than two chunks of 64 rows, and no multiple of a page.
const PROMPT: usize = 150;

/// Returns the bits of the logits after the prompt, in pieces of these lengths, the last one repeated.
fn bits(session: &mut dyn Session, prompt: &[u32], pieces: &[usize]) -> Vec<u32> {
    session.rewind(0).unwrap();
    let (mut rest, mut lengths) = (prompt, pieces.iter());
    let mut length = 1;
    while !rest.is_empty() {
        length = lengths.next().copied().unwrap_or(length).min(rest.len());
        let (piece, tail) = rest.split_at(length);
        match *piece {
            [token] => session.decode_step(token).unwrap(),
            _ => session.prefill(piece).unwrap(),
        };
        rest = tail;
    }
    session.logits().unwrap().into_iter().map(f32::to_bits).collect()
}

fn holds(model: &Path, precision: Precision, quant: Quant, chunk: Option<usize>) {
    let built = built(&Request { precision, quant, chunk, ..request(model, &["cpu"]) });
    let name = format!("{} in {precision:?} {quant:?}", model.display());
    let serving = built.bundle.manifest().targets["cpu"].serving.as_ref().unwrap();
    if !serving.exact {
        let features = Machine::host().cpu_features;
        assert!(!features.contains("avx2"), "{name}: this machine has kernels, which are exact");
        return;
    }
    let mut expected = None;
    for device in ["local-task", "local-sync"] {
        let mut session = built.session(device).unwrap();
        let vocab = u32::try_from(session.capabilities().vocab).unwrap();
        let prompt: Vec<u32> = (0..).map(|index: u32| index * 7 % vocab).take(PROMPT).collect();
        for pieces in [&[PROMPT][..], &[1], &[7], &[32], &[100, 1], &[1, 33, 1, 80], &[149, 1]] {
            let found = bits(&mut *session, &prompt, pieces);
            let expected = expected.get_or_insert_with(|| found.clone());
            let differing = found.iter().zip(&*expected).filter(|(a, b)| a != b).count();
            assert_eq!(differing, 0, "{name} on {device}, pieces of {pieces:?}: of {vocab} logits");
        }
    }
}

#[test]
fn of_the_demo_in_every_weight_format() {
    let demo = models().join("demo");
    for precision in [Float::F32, Float::Bf16] {
        holds(&demo, Precision::Float(precision), Quant::None, None);
    }
    for quant in [Quant::Q8, Quant::Q4] {
        holds(&demo, Precision::Float(Float::Bf16), quant, None);
    }
}

/// Biases, learned positions, layer norms, mixtures, sinks, windows and caps.
#[test]
fn of_families_with_other_layers() {
    for name in ["gpt2-hub", "gpt-oss-hub", "gemma2-hub"] {
        let fixture: PathBuf = fixtures().join(name);
        holds(&fixture, Precision::Float(Float::F32), Quant::None, Some(64));
    }
}
