//! Compares a bundle's answers with the recorded ones, on a CPU that compiles no bundles.
//!
//! `compiler-driver/tests/qemu.rs` compiles the bundles and starts this program on CPUs that qemu emulates.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../compiler-driver/tests/answers.rs"]
mod answers;

use std::{
    env,
    path::{Path, PathBuf},
};

use answers::{
    Recorded, Text, after_others, embedding_tolerance, engine, holds, on, together, tokens_and_logits,
};
use mlxcel_artifacts::{Bundle, report};
use mlxcel_runtime::{DeviceOptions, Program, load_encoder};

/// The word before what was compared. A process that ran no test does not write it.
const EXACT: &str = "exact:";

/// Returns the path that a variable names.
fn named(variable: &str) -> PathBuf {
    env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set")).into()
}

#[test]
#[ignore = "takes a bundle and answers: see cargo xtask emulate"]
fn a_bundle_answers_as_recorded() {
    let bundle = Bundle::open(&named("MLXCEL_BUNDLE")).unwrap_or_else(|error| panic!("{}", report(&error)));
    if bundle.manifest().model_spec().is_err() {
        let goldens = bundle.manifest().goldens.clone();
        let program = Program::new(bundle).unwrap();
        let loaded = program.load(DeviceOptions::default()).unwrap();
        let passes = |golden| loaded.replay(&program, golden).unwrap().has_passed();
        assert!(!goldens.is_empty() && goldens.iter().all(passes), "a recorded call has other results");
        eprintln!("{EXACT} {} recorded calls", goldens.len());
        return;
    }
    let expected = named("MLXCEL_EXPECTED");
    if bundle.manifest().model_spec().is_ok_and(|model| model.embedding.is_some()) {
        let texts = Text::all_in(&expected).unwrap();
        let mut encoder = load_encoder(&bundle, None, &on("local-task")).unwrap();
        let fixture = expected.parent().and_then(Path::file_name).unwrap().to_string_lossy();
        holds(&fixture, encoder.as_mut(), &texts, embedding_tolerance(&fixture));
        eprintln!("{EXACT} {} embeddings, each in three calls", texts.len());
        return;
    }
    let prompts = Recorded::all_in(&expected).unwrap();
    let prompts: Vec<&Recorded> = prompts.iter().collect();
    let last = prompts[prompts.len() - 1];
    let mut engine = engine(&bundle, None, &on("local-task")).unwrap();
    let compared = prompts
        .iter()
        .try_for_each(|recorded| tokens_and_logits(&mut engine, recorded))
        .and_then(|()| after_others(&mut engine, last))
        .and_then(|()| together(&mut engine, &prompts));
    if let Err(failure) = compared {
        panic!("{}", failure.0)
    }
    eprintln!(
        "{EXACT} {} tokens of {} prompts",
        prompts.iter().map(|p| p.tokens.len()).sum::<usize>(),
        prompts.len()
    );
}
