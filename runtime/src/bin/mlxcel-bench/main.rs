//! `mlxcel-bench`: measures the speed, the profile and the perplexity of a bundle.

mod array;
mod batches;
#[path = "../shared/integer.rs"]
mod integer;
mod options;
#[path = "../shared/origin.rs"]
mod origin;
#[path = "../shared/progress.rs"]
mod progress;
mod render;
mod table;
#[path = "../shared/timeline.rs"]
mod timeline;

use std::{
    env, fs,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use mlxcel_artifacts::{Bundle, Driver, INTERRUPTED, parse_arguments, report};
use mlxcel_runtime::{
    BenchWork, CacheSize, Cancel, CheckpointFiles, DeviceInfo, Engine, EngineSettings, Error, LoadOptions,
    ModelRunner, Profile, Quality, ReadBandwidth, Tokenizer, Weights, load, measure_quality,
};

use crate::{
    batches::BatchRows,
    options::Options,
    progress::bar,
    render::{ModelInfo, Profiles, Row, Rows},
};

/// The progress bar of cases.
const CASES: &str = "{bar:30} {pos} of {len} cases {msg}";

fn main() -> ExitCode {
    let mut options = parse_arguments::<Options>(env::args_os());
    let cancel = Cancel::on_signals();
    let path = options.trace.clone();
    let timeline = &mut options.timeline;
    let timeline = path.as_deref().map(|path| timeline::begin(path, timeline)).transpose();
    let done = timeline.and_then(|file| {
        run(&options, &cancel)?;
        file.map_or(Ok(()), timeline::end)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error)
            if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(_) if cancel.is_cancelled() => ExitCode::from(INTERRUPTED),
        Err(error) => {
            // If stderr is gone, there is nowhere to report the error.
            _ = writeln!(io::stderr(), "{}", report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Runs the measurement that the options select.
fn run(options: &Options, cancel: &Cancel) -> Result<()> {
    let bundle = open(options, &options.bundle)?;
    if let Some(text) = &options.perplexity {
        let found = measure_on_text(options, &bundle, text, cancel)?;
        return print(&render::quality(&found, options.output));
    }
    if !options.parallel.is_empty() {
        return measure_batches(options, &bundle, cancel);
    }
    let cases = options.cases()?;
    let mut engine = load_engine(options, &bundle, 1)?;
    let model = ModelInfo::new(&bundle, engine.device())?;
    if options.profile {
        return profile(options, &model, &cases, &mut |case| Profile::record(case, &mut engine, cancel));
    }
    let has_steps = cases.iter().any(|case| matches!(case.work, BenchWork::Decode(_)));
    let bandwidth = if has_steps { read_bandwidth(&bundle, engine.device())? } else { None };
    let bar = bar(Some(cases.len() as u64), CASES);
    let mut rows = Rows::new(&model, &cases, options.output);
    bar.suspend(|| print(&rows.begin()))?;
    let measured = cases.into_iter().try_for_each(|case| {
        bar.set_message(case.to_string());
        let samples = case.run(&mut engine, options.repetitions(), bandwidth.as_ref(), cancel)?;
        bar.inc(1);
        bar.suspend(|| print(&rows.row(&Row { case, samples })))
    });
    bar.finish_and_clear();
    measured.and(print(&rows.end()))
}

/// Profiles each test, and shows each profile before the next one is recorded.
fn profile<C: ToString>(
    options: &Options,
    model: &ModelInfo,
    cases: &[C],
    record: &mut dyn FnMut(&C) -> Result<Profile, Error>,
) -> Result<()> {
    if let Some(warning) = options.repetitions_without_effect() {
        _ = writeln!(io::stderr(), "{warning}");
    }
    let bar = bar(Some(cases.len() as u64), CASES);
    let mut profiles = Profiles::new(model, options.output);
    bar.suspend(|| print(&profiles.begin()))?;
    let recorded = cases.iter().try_for_each(|case| {
        bar.set_message(case.to_string());
        let profile = record(case)?;
        bar.inc(1);
        bar.suspend(|| print(&profiles.row(&profile)))
    });
    bar.finish_and_clear();
    recorded.and(print(&profiles.end()))
}

/// Writes a part of the results to stdout.
fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to stdout\nhint: df -h shows whether the disk it goes to is full")
}

/// Opens a bundle without its weights, and checks the signature that is required.
fn open(options: &Options, path: &Path) -> Result<Bundle> {
    let bundle = options.origin.open(path)?;
    options.origin.check(&bundle)?;
    Ok(bundle)
}

/// Measures several sequences at once.
fn measure_batches(options: &Options, bundle: &Bundle, cancel: &Cancel) -> Result<()> {
    let cases = options.batch_cases()?;
    let most = cases.iter().map(|case| case.sequences).max().unwrap_or(1);
    let mut engine = load_engine(options, bundle, most)?;
    let model = ModelInfo::new(bundle, engine.device())?;
    if options.profile {
        return profile(options, &model, &cases, &mut |case| {
            Profile::record_batch(case, &mut engine, cancel)
        });
    }
    let bar = bar(Some(cases.len() as u64), CASES);
    let mut rows = BatchRows::new(&model, options.output);
    bar.suspend(|| print(&rows.begin()))?;
    let measured = cases.into_iter().try_for_each(|case| {
        bar.set_message(format!("{} sequences", case.sequences));
        let samples = case.run(&mut engine, options.repetitions(), cancel)?;
        bar.inc(1);
        bar.suspend(|| print(&rows.row(&case, &samples)))
    });
    bar.finish_and_clear();
    measured.and(print(&rows.end()))
}

/// Loads a bundle with room for so many sequences of the whole context.
fn load_engine(options: &Options, bundle: &Bundle, sequences: usize) -> Result<Engine<Box<dyn ModelRunner>>> {
    let given = options.weights.as_deref().map(Weights::open).transpose()?;
    let cache = options.cache_size.unwrap_or(CacheSize::Sequences(sequences));
    let (device, threads, context) = (options.device, options.threads, options.ctx_size);
    let trace = options.timeline.clone();
    let load_options = LoadOptions { device, threads, context, cache, trace, ..LoadOptions::default() };
    options.origin.note(bundle)?;
    let span = options.timeline.span("load");
    let model = load(bundle, given, &load_options)?;
    drop(span);
    if let Some(warning) = options.device.threads_without_effect(options.threads) {
        _ = writeln!(io::stderr(), "{warning}");
    }
    Ok(Engine::new(model, EngineSettings::default())?)
}

/// Prepares to measure the memory bandwidth of the CPU; `None` on a GPU, which measures its own.
fn read_bandwidth(bundle: &Bundle, device: &DeviceInfo) -> Result<Option<ReadBandwidth>> {
    let target = bundle.manifest().targets.get(&device.target);
    let is_cpu = target.is_some_and(|target| target.driver == Driver::Local);
    Ok(is_cpu.then(|| ReadBandwidth::new(device.threads)).transpose()?)
}

/// Measures the perplexity on a file's text.
fn measure_on_text(options: &Options, bundle: &Bundle, file: &Path, cancel: &Cancel) -> Result<Quality> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read {}\nhint: name a text file in UTF-8", file.display()))?;
    let files = CheckpointFiles::new(bundle, options.weights.as_deref().filter(|path| !path.is_file()));
    let mut tokens = Tokenizer::from_checkpoint(&files)?.encode(&text, true)?;
    tokens.truncate(options.tokens.unwrap_or(usize::MAX));
    // Both signatures are checked before any code runs.
    let reference = options
        .reference
        .as_deref()
        .map(|path| open(options, path).with_context(|| format!("cannot compare with {}", path.display())));
    let reference = reference.transpose()?;
    let mut engine = load_engine(options, bundle, 1)?;
    let mut reference = reference.as_ref().map(|reference| load_engine(options, reference, 1)).transpose()?;
    let window = options.window(engine.limits().context);
    let bar = bar(Some(tokens.len() as u64), "{bar:30} {pos} of {len} tokens");
    let found = measure_quality(
        &mut engine,
        reference.as_mut(),
        &tokens,
        window,
        &mut |done, _| bar.set_position(done as u64),
        cancel,
    );
    bar.finish_and_clear();
    Ok(found?)
}
