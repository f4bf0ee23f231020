//! `--self-test` and `--record-test`: whether the model answers on this device as it was recorded to.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use mlxcel_artifacts::{Bundle, SelfTestCase};
use mlxcel_runtime::{
    CheckpointFiles, SelfTestResult, Tokenizer, load, load_encoder, record_embedding, record_generation,
    replay_embedding, replay_generation, self_test_prompts,
};

use crate::{
    model::{check_weights, note_packing, open_weights},
    options::{Options, Prompt},
};

/// Tokens recorded after each prompt when -n does not say.
const RECORDED: usize = 32;

/// What fails when stdout does.
const WRITING: &str = "cannot write the result to standard output";

/// Replays what the bundle has recorded, a line for each prompt.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let bundle = options.open_bundle()?;
    let replays = &bundle.manifest().replays;
    if replays.is_empty() {
        bail!(
            "{} has no self-test: nothing was recorded\n\
             hint: mlxcel-run --record-test records what it answers on a device that is trusted",
            bundle.path().display()
        );
    }
    let mut out = io::stdout().lock();
    let mut failed = 0;
    let mut report = |index: usize, recorded: &SelfTestCase, outcome: &SelfTestResult| {
        failed += usize::from(*outcome != SelfTestResult::Passed);
        writeln!(out, "{}", line(index, replays.len(), recorded, outcome)).context(WRITING)
    };
    let device = each(options, &bundle, |model| {
        for (index, recorded) in replays.iter().enumerate() {
            let outcome = match model {
                Model::Session(session) => replay_generation(session.as_mut(), recorded)?,
                Model::Encoder(encoder) => replay_embedding(encoder.as_mut(), recorded)?,
            };
            report(index, recorded, &outcome)?;
        }
        Ok(())
    })?;
    let verdict =
        if failed == 0 { "passed".into() } else { format!("failed, {failed} of {}", replays.len()) };
    writeln!(out, "self-test {verdict} on {device}").context(WRITING)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Records what the model answers to the prompt of the options, or to usual ones, and puts it into the bundle.
pub(crate) fn record_test(options: &Options) -> Result<ExitCode> {
    let bundle = options.open_bundle()?;
    let count = options.recorded_tokens(RECORDED);
    let mut replays = Vec::new();
    let device = each(options, &bundle, |model| {
        let capabilities = match model {
            Model::Session(session) => session.capabilities(),
            Model::Encoder(encoder) => encoder.capabilities(),
        };
        let smallest = capabilities.prefill.first().copied().unwrap_or(1);
        let prompts = match options.given_prompt() {
            Some(Prompt::Tokens(tokens)) => vec![tokens],
            Some(Prompt::Text(text)) => {
                let files = CheckpointFiles::new(&bundle, options.checkpoint());
                vec![Tokenizer::from_checkpoint(&files)?.encode(&text, true)?]
            }
            Some(Prompt::None) | None => {
                self_test_prompts(capabilities.vocab, capabilities.context, smallest, count)
            }
        };
        for prompt in prompts {
            replays.push(match model {
                Model::Session(session) => record_generation(session.as_mut(), &prompt, count)?,
                Model::Encoder(encoder) => record_embedding(encoder.as_mut(), &prompt)?,
            });
        }
        Ok(())
    })?;
    let recorded = bundle.with_replays(replays)?;
    let text = format!(
        "recorded {} prompts on {device} in {}",
        recorded.manifest().replays.len(),
        recorded.path().display()
    );
    writeln!(io::stdout().lock(), "{text}").context(WRITING)?;
    Ok(ExitCode::SUCCESS)
}

/// What runs the bundle.
enum Model {
    Session(Box<dyn mlxcel_runtime::Session>),
    Encoder(Box<dyn mlxcel_runtime::Encoder>),
}

/// Loads the bundle and lets `body` use it; gives the device.
fn each(options: &Options, bundle: &Bundle, body: impl FnOnce(&mut Model) -> Result<()>) -> Result<String> {
    let weights = open_weights(options, bundle)?;
    check_weights(bundle, weights.as_ref())?;
    options.origin.note(bundle)?;
    let load_options = options.load_options();
    let mut model = match bundle.manifest().plan.embedding {
        None => Model::Session(load(bundle, weights, &load_options)?),
        Some(_) => Model::Encoder(load_encoder(bundle, weights, &load_options)?),
    };
    let capabilities = match &model {
        Model::Session(session) => session.capabilities(),
        Model::Encoder(encoder) => encoder.capabilities(),
    };
    note_packing(options, bundle, capabilities);
    let device = capabilities.device.clone();
    body(&mut model)?;
    Ok(device)
}

/// How one replay went.
fn line(index: usize, count: usize, recorded: &SelfTestCase, outcome: &SelfTestResult) -> String {
    let SelfTestCase { prompt, tokens, .. } = recorded;
    let s = if prompt.len() == 1 { "" } else { "s" };
    let which = format!("{} of {count}, after {} token{s}", index + 1, prompt.len());
    match outcome {
        SelfTestResult::Passed if tokens.is_empty() => format!("ok    {which}: the embedding"),
        SelfTestResult::Passed => format!("ok    {which}: {} tokens", tokens.len()),
        SelfTestResult::TokenMismatch { index, found, expected, gap } => format!(
            "FAIL  {which}: token {} of {} is {found}, expected {expected}, whose logit was {gap:.4} above every other",
            index + 1,
            tokens.len()
        ),
        SelfTestResult::EmbeddingMismatch { distance, tolerance } => {
            format!(
                "FAIL  {which}: the embedding is {distance:.4} of its length away, expected {tolerance} at most"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let recorded = SelfTestCase {
            prompt: vec![1, 2],
            tokens: vec![3, 4, 5],
            gaps: vec![1.0; 3],
            ..SelfTestCase::default()
        };
        let diverged = SelfTestResult::TokenMismatch { index: 1, found: 9, expected: 4, gap: 0.25 };
        insta::assert_snapshot!(line(0, 3, &recorded, &SelfTestResult::Passed), @"ok    1 of 3, after 2 tokens: 3 tokens");
        insta::assert_snapshot!(line(1, 3, &recorded, &diverged), @"FAIL  2 of 3, after 2 tokens: token 2 of 3 is 9, expected 4, whose logit was 0.2500 above every other");
        let embedding = SelfTestCase { prompt: vec![1], embedding: vec![1.0], ..SelfTestCase::default() };
        let distant = SelfTestResult::EmbeddingMismatch { distance: 0.5, tolerance: 0.01 };
        insta::assert_snapshot!(line(2, 3, &embedding, &distant), @"FAIL  3 of 3, after 1 token: the embedding is 0.5000 of its length away, expected 0.01 at most");
        insta::assert_snapshot!(line(2, 3, &embedding, &SelfTestResult::Passed), @"ok    3 of 3, after 1 token: the embedding");
    }
}
