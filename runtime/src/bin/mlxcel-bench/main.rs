//! `mlxcel-bench`: how fast a bundle is, where its time goes, and how well it predicts a text.

mod options;
mod render;

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::Parser as _;
use indicatif::{ProgressBar, ProgressStyle};
use mlxcel_artifacts::{Bundle, INTERRUPTED, report};
use mlxcel_runtime::{
    Cancel, CheckpointFiles, LoadOptions, Profile, Quality, Reader, Session, Tokenizer, Weights, load,
    quality,
};

use crate::{
    options::Options,
    render::{About, Row},
};

fn main() -> ExitCode {
    let options = Options::parse();
    let cancel = Cancel::on_signals();
    let printed =
        run(&options, &cancel).and_then(|text| Ok(io::stdout().lock().write_all(text.as_bytes())?));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error)
            if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(_) if cancel.is_cancelled() => ExitCode::from(INTERRUPTED),
        Err(error) => {
            // Nothing is left to tell it to when stderr is gone.
            _ = writeln!(io::stderr(), "{}", report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Does what is asked and gives what goes to stdout.
fn run(options: &Options, cancel: &Cancel) -> Result<String> {
    let bundle = Bundle::open_without_weights(&options.bundle)?;
    if let Some(text) = &options.perplexity {
        let found = on_text(options, &bundle, text, cancel)?;
        return Ok(render::quality(&found, options.output));
    }
    let cases = options.cases()?;
    let mut session = loaded(options, &bundle)?;
    let about = About::new(&bundle, session.capabilities());
    if options.profile {
        let profiles = cases.iter().map(|case| Ok((*case, Profile::of(case, session.as_mut(), cancel)?)));
        return Ok(render::profiles(&about, &profiles.collect::<Result<Vec<_>>>()?, options.output));
    }
    let weights = read_weights(options, &bundle, &session.capabilities().target)?;
    let reader = Reader::new(weights, session.capabilities().threads);
    let bar = bar(cases.len(), "case");
    let mut rows = Vec::new();
    for case in cases {
        bar.set_message(case.to_string());
        let samples = case.run(session.as_mut(), options.repetitions, Some(&reader), cancel)?;
        rows.push(Row { case, samples });
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(render::rows(&about, &rows, options.output))
}

fn loaded(options: &Options, bundle: &Bundle) -> Result<Box<dyn Session>> {
    let given = options.weights.as_deref().map(Weights::in_folder).transpose()?;
    let load_options =
        LoadOptions { device: options.device, threads: options.threads, context: options.ctx_size };
    Ok(load(bundle, given, &load_options)?)
}

/// The weights that a session on `target` reads; those that it packed for itself, as they were before.
fn read_weights(options: &Options, bundle: &Bundle, target: &str) -> Result<Weights> {
    if let Some(folder) = &options.weights {
        return Ok(Weights::in_folder(folder)?);
    }
    Ok(match bundle.packed_weights(target)? {
        Some(path) => Weights::open(&[path])?,
        None => Weights::of_bundle(bundle)?,
    })
}

/// The quality on the file's text.
fn on_text(options: &Options, bundle: &Bundle, file: &std::path::Path, cancel: &Cancel) -> Result<Quality> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let files = CheckpointFiles::new(bundle, options.weights.as_deref());
    let mut tokens = Tokenizer::of_checkpoint(&files)?.encode(&text, true)?;
    tokens.truncate(options.tokens.unwrap_or(usize::MAX));
    let mut session = loaded(options, bundle)?;
    let reference = options.reference.as_deref().map(Bundle::open_without_weights).transpose()?;
    let mut reference = reference.as_ref().map(|reference| loaded(options, reference)).transpose()?;
    let reference = reference.as_mut().map(|session| session.as_mut() as &mut (dyn Session + '_));
    let window = options.window(session.capabilities().context);
    let bar = bar(tokens.len(), "token");
    let found = quality(
        session.as_mut(),
        reference,
        &tokens,
        window,
        &mut |done, _| bar.set_position(done as u64),
        cancel,
    );
    bar.finish_and_clear();
    Ok(found?)
}

/// Shown on a terminal alone.
fn bar(length: usize, unit: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length as u64);
    let style = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}} of {{len}} {unit}s {{msg}}"));
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
