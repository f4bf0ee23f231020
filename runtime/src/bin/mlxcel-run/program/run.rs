//! Calls a function, or replays the recorded calls.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use mlxcel_artifacts::{Bundle, Tensor, TensorFile, entry::Entry};
use mlxcel_runtime::{Function, LoadedProgram, Program, Tolerance, compare, find_function};

use super::{differences, inputs, outputs};
use crate::{options::Options, stdio::note};

/// The context of an error of stdout.
const WRITING: &str =
    "cannot write to standard output\nhint: df -h shows whether the disk it goes to is full";

/// Runs the function that the options name, or replays the recorded calls.
pub(super) fn run(options: &Options, bundle: Bundle) -> Result<ExitCode> {
    if options.self_test {
        return self_test(options, bundle);
    }
    let manifest = bundle.manifest();
    let chosen = find_function(manifest, options.program.function.as_deref())?;
    // A function that was compiled for several shapes has an entry point for each.
    let is_same = |entry: &&Entry| {
        entry.name == chosen.name
            || options.program.function.as_deref() != Some(&chosen.name)
                && entry.function_name() == chosen.function_name()
    };
    let entries: Vec<_> = manifest.functions()?.iter().filter(is_same).collect();
    let timeline = &options.timeline;
    let span = timeline.span("read the inputs");
    let (entry, arguments) = inputs::read(&options.program.input, &entries)?;
    drop(span);
    let names: Vec<String> = entry.outputs().map(|(name, _)| name).collect();
    let places = outputs::parse(&options.output, &names)?;
    places.iter().try_for_each(|place| outputs::check(place, names.len()))?;
    let expected = expected(options, entry)?;

    options.origin.note(&bundle)?;
    let span = timeline.span("load");
    let loaded = Program::new(bundle.clone())?.load(options.device_options())?;
    drop(span);
    let span = timeline.span("copy the inputs");
    let mut function = loaded.function(&entry.name)?;
    for (name, tensor) in &arguments {
        function.set(name, tensor)?;
    }
    drop(span);
    let repeat = options.program.repeat.unwrap_or(1);
    let took = call(&mut function, repeat)?;
    let _span = timeline.span("write the results");
    let results = names.iter().map(|name| Ok((name.clone(), function.read(name)?)));
    let results: BTreeMap<String, Tensor> = results.collect::<Result<_>>()?;
    let text =
        places.iter().map(|place| outputs::write(place, &results, &names)).collect::<Result<String>>()?;
    io::stdout().lock().write_all(text.as_bytes()).context(WRITING)?;
    note(&timing(&loaded, &entry.name, repeat, took));
    let mut differs = false;
    for (name, expected) in &expected {
        let tolerance = options.program.tolerance();
        let result = results.get(name).map(|found| compare(found, expected, tolerance));
        let Some(result) = result else { continue };
        differs |= result.is_err();
        note(&differences::line(name, &result, tolerance));
    }
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Calls a function a number of times. Returns how long that took.
fn call(function: &mut Function, repeat: u64) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..repeat {
        function.call()?;
    }
    Ok(start.elapsed())
}

/// Reads the results of `--expected`, if it was given.
fn expected(options: &Options, entry: &Entry) -> Result<BTreeMap<String, Tensor>> {
    let Some(path) = &options.program.expected else { return Ok(BTreeMap::new()) };
    let file = TensorFile::open(Path::new(path.strip_prefix('@').unwrap_or(path)))?;
    let types: Vec<_> =
        entry.outputs().map(|(name, spec)| (name, spec.dtype, spec.shape.as_slice())).collect();
    let expected = match (file.has_names(), types.as_slice()) {
        (true, _) => file.read_expected("result", &types)?,
        (false, [(name, ..)]) => [(name.clone(), file.read_as("", "result", 0, &types)?)].into(),
        (false, _) => {
            bail!("{path} has one array without a name, expected results by name\nhint: write an npz file")
        }
    };
    if expected.is_empty() {
        bail!("{path} has no arrays, expected results by name\nhint: write them with numpy's savez");
    }
    Ok(expected)
}

/// Returns how long a call took, and on which device.
fn timing(loaded: &LoadedProgram, name: &str, repeat: u64, took: Duration) -> String {
    let micros = took.as_secs_f64() * 1e6 / repeat as f64;
    let calls = if repeat == 1 { "1 call".to_owned() } else { format!("{repeat} calls") };
    format!("{name} on {}: {calls}, {micros:.1} µs each", loaded.device().name)
}

/// Replays the recorded calls, and writes a line for each.
fn self_test(options: &Options, bundle: Bundle) -> Result<ExitCode> {
    let goldens = bundle.manifest().goldens.clone();
    if goldens.is_empty() {
        bail!(
            "{} has no self-test: nothing was recorded\n\
             hint: compile it with mlxcel-compile --golden IN.npz:OUT.npz",
            bundle.display_name()
        );
    }
    options.origin.note(&bundle)?;
    let program = Program::new(bundle)?;
    let loaded = program.load(options.device_options())?;
    let mut out = io::stdout().lock();
    let mut failed = 0;
    for (number, golden) in (1..).zip(&goldens) {
        let result = loaded.replay(&program, golden)?;
        failed += usize::from(!result.has_passed());
        let tolerance = Tolerance { rtol: golden.rtol, atol: golden.atol };
        let name = |result: &str| format!("{number} of {}, {} {result}", goldens.len(), golden.function);
        for (result, found) in &result.results {
            writeln!(out, "{}", differences::line(&name(result), found, tolerance)).context(WRITING)?;
        }
    }
    let verdict =
        if failed == 0 { "passed".into() } else { format!("failed, {failed} of {}", goldens.len()) };
    writeln!(out, "self-test {verdict} on {}", loaded.device().name).context(WRITING)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
