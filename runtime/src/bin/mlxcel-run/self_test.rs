//! `--self-test` and `--record-test`: answers recorded in the bundle, compared with those of this device.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use mlxcel_artifacts::{Bundle, SelfTestCase};
use mlxcel_runtime::{
    CheckpointFiles, Encoder, Engine, ModelRunner, SelfTestResult, Tokenizer, load_encoder, record_embedding,
    record_generation, replay_embedding, replay_generation, self_test_prompts,
};

use crate::{
    model::{check_weights, note_packing, open_engine, open_weights},
    options::{Options, Prompt},
};

/// The number of tokens recorded after each prompt without -n.
const RECORDED: usize = 32;

/// The context of an error of stdout.
const WRITING: &str =
    "cannot write the result to standard output\nhint: df -h shows whether the disk it goes to is full";

/// Compares the recorded answers with those of this device, and writes a line for each prompt.
pub(crate) fn run(options: &Options, bundle: Bundle) -> Result<ExitCode> {
    let cases = &bundle.manifest().replays;
    if cases.is_empty() {
        bail!(
            "{} has no self-test: nothing was recorded\n\
             hint: mlxcel-run {0} --record-test records answers on a device that you trust",
            bundle.path().display()
        );
    }
    let mut model = Model::load(options, &bundle)?;
    let mut out = io::stdout().lock();
    let mut failed = 0;
    for (index, case) in cases.iter().enumerate() {
        let result = model.replay(case)?;
        failed += usize::from(result != SelfTestResult::Passed);
        writeln!(out, "{}", line(index, cases.len(), case, &result)).context(WRITING)?;
    }
    let verdict = if failed == 0 { "passed".into() } else { format!("failed, {failed} of {}", cases.len()) };
    writeln!(out, "self-test {verdict} on {}", model.device()).context(WRITING)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Records the model's answers to the prompt of the options, or to default prompts, in the bundle.
pub(crate) fn record_test(options: &Options, bundle: Bundle) -> Result<ExitCode> {
    let count = options.recorded_tokens(RECORDED);
    let mut model = Model::load(options, &bundle)?;
    let prompts = prompts(options, &bundle, &model, count)?;
    let cases = prompts.iter().map(|prompt| model.record(prompt, count)).collect::<Result<Vec<_>>>()?;
    let device = model.device();
    let recorded = bundle.with_replays(cases)?;
    let (count, path) = (recorded.manifest().replays.len(), recorded.path().display());
    writeln!(io::stdout().lock(), "recorded {count} prompts on {device} in {path}").context(WRITING)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the prompt of the options, or default prompts.
fn prompts(options: &Options, bundle: &Bundle, model: &Model, count: usize) -> Result<Vec<Vec<u32>>> {
    Ok(match options.given_prompt() {
        Some(Prompt::Tokens(tokens)) => vec![tokens],
        Some(Prompt::Text(text)) => {
            let files = CheckpointFiles::new(bundle, options.checkpoint());
            vec![Tokenizer::from_checkpoint(&files)?.encode(&text, true)?]
        }
        Some(Prompt::None) | None => {
            let (vocab, context, smallest) = model.sizes();
            self_test_prompts(vocab, context, smallest, count)
        }
    })
}

/// The model of a bundle, of either kind.
enum Model {
    Engine(Box<Engine<Box<dyn ModelRunner>>>),
    Encoder(Box<dyn Encoder>),
}

impl Model {
    /// Loads the bundle after checking its weights.
    fn load(options: &Options, bundle: &Bundle) -> Result<Self> {
        let weights = open_weights(options, bundle)?;
        check_weights(bundle, weights.as_ref())?;
        options.origin.note(bundle)?;
        let load_options = options.load_options();
        let model = match bundle.manifest().model_spec()?.embedding {
            None => return Ok(Self::Engine(Box::new(open_engine(options, bundle, weights)?))),
            Some(_) => load_encoder(bundle, weights, &load_options)?,
        };
        note_packing(options, bundle, model.device().packed_at_load);
        Ok(Self::Encoder(model))
    }

    /// Returns the device, for messages.
    fn device(&self) -> &str {
        match self {
            Self::Engine(engine) => &engine.device().name,
            Self::Encoder(encoder) => &encoder.device().name,
        }
    }

    /// Returns the size of the vocabulary, the context, and the rows of the smallest call for several tokens.
    fn sizes(&self) -> (usize, usize, usize) {
        match self {
            Self::Engine(engine) => {
                let limits = engine.limits();
                let rows = limits.steps.iter().map(|size| size.rows_of_a_sequence());
                (limits.vocab, limits.context, rows.filter(|&rows| rows > 1).min().unwrap_or(1))
            }
            Self::Encoder(encoder) => {
                let limits = encoder.limits();
                (limits.vocab, limits.context, limits.rows.first().copied().unwrap_or(1))
            }
        }
    }

    /// Records the answer to a prompt: at most `count` tokens, or an embedding.
    fn record(&mut self, prompt: &[u32], count: usize) -> Result<SelfTestCase> {
        Ok(match self {
            Self::Engine(engine) => record_generation(engine, prompt, count)?,
            Self::Encoder(encoder) => record_embedding(encoder.as_mut(), prompt)?,
        })
    }

    /// Answers a recorded prompt again and compares the answers.
    fn replay(&mut self, case: &SelfTestCase) -> Result<SelfTestResult> {
        Ok(match self {
            Self::Engine(engine) => replay_generation(engine, case)?,
            Self::Encoder(encoder) => replay_embedding(encoder.as_mut(), case)?,
        })
    }
}

/// Renders the result of one prompt.
fn line(index: usize, count: usize, case: &SelfTestCase, result: &SelfTestResult) -> String {
    let SelfTestCase { prompt, tokens, .. } = case;
    let s = if prompt.len() == 1 { "" } else { "s" };
    let which = format!("{} of {count}, after {} token{s}", index + 1, prompt.len());
    match result {
        SelfTestResult::Passed if tokens.is_empty() => format!("ok    {which}: the embedding"),
        SelfTestResult::Passed => format!("ok    {which}: {} tokens", tokens.len()),
        SelfTestResult::TokenMismatch { index, found, expected, gap } => format!(
            "FAIL  {which}: token {} of {} is {found}, expected {expected}, whose logit led by {gap:.4}",
            index + 1,
            tokens.len()
        ),
        SelfTestResult::TooShort { found, expected } => {
            format!("FAIL  {which}: the answer ends after {found} tokens, expected {expected}")
        }
        SelfTestResult::EmbeddingMismatch { distance, tolerance } => format!(
            "FAIL  {which}: the embedding differs by {distance:.4} of its length, expected at most {tolerance}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_rendered() {
        let recorded = SelfTestCase {
            prompt: vec![1, 2],
            tokens: vec![3, 4, 5],
            gaps: vec![1.0; 3],
            ..SelfTestCase::default()
        };
        let diverged = SelfTestResult::TokenMismatch { index: 1, found: 9, expected: 4, gap: 0.25 };
        insta::assert_snapshot!(line(0, 3, &recorded, &SelfTestResult::Passed), @"ok    1 of 3, after 2 tokens: 3 tokens");
        insta::assert_snapshot!(line(1, 3, &recorded, &diverged), @"FAIL  2 of 3, after 2 tokens: token 2 of 3 is 9, expected 4, whose logit led by 0.2500");
        let short = SelfTestResult::TooShort { found: 2, expected: 3 };
        insta::assert_snapshot!(line(1, 3, &recorded, &short), @"FAIL  2 of 3, after 2 tokens: the answer ends after 2 tokens, expected 3");
        let embedding = SelfTestCase { prompt: vec![1], embedding: vec![1.0], ..SelfTestCase::default() };
        let distant = SelfTestResult::EmbeddingMismatch { distance: 0.5, tolerance: 0.01 };
        insta::assert_snapshot!(line(2, 3, &embedding, &distant), @"FAIL  3 of 3, after 1 token: the embedding differs by 0.5000 of its length, expected at most 0.01");
        insta::assert_snapshot!(line(2, 3, &embedding, &SelfTestResult::Passed), @"ok    3 of 3, after 1 token: the embedding");
    }
}
