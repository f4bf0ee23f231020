//! `mlxcel-compile`: compiles a model into a bundle. Results go to stdout, everything else to stderr.

mod compile;
mod options;
mod outcome;
mod pack;
mod program;
mod progress;

use std::{
    env,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use mlxcel_artifacts::{INTERRUPTED, NEVER_RUN, Store, parse_arguments, report};
use mlxcel_compiler_driver::{
    Cancel, CompilerLocation, Error, HubError, HubSettings, ModelSource, Target, explain, explain_program,
    write_random_weights,
};
use mlxcel_models::{FAMILIES, PRESETS};

use crate::{
    compile::compile,
    options::{Cli, Command},
    outcome::Outcome,
    pack::PackFailure,
    progress::ProgressView,
};

fn main() -> ExitCode {
    let mut progress = ProgressView::default();
    let cancel = Cancel::on_signals();
    let result = run(parse_arguments::<Cli>(env::args_os()), &cancel, &mut progress);
    progress.clear();
    // If stderr is closed, there is nowhere to report that.
    let say = |text: &str| _ = writeln!(io::stderr(), "{text}");
    let Outcome { stdout, packing } = match result {
        Ok(outcome) => outcome,
        Err(error) if cancel.is_cancelled() => {
            match error {
                // What was downloaded before is not nothing.
                Error::Hub(_) => say(&HubError::Cancelled.to_string()),
                _ => say("interrupted; nothing was written"),
            }
            return ExitCode::from(INTERRUPTED);
        }
        Err(error) => {
            say(&report(&error));
            return ExitCode::FAILURE;
        }
    };
    match io::stdout().lock().write_all(stdout.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to stdout: {error}"));
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    match packing {
        Ok(()) => ExitCode::SUCCESS,
        Err(PackFailure { reason, interrupted, hint }) => {
            say(&format!("{reason}\nhint: {hint}"));
            if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::FAILURE }
        }
    }
}

/// Runs the command.
fn run(cli: Cli, cancel: &Cancel, progress: &mut ProgressView) -> Result<Outcome, Error> {
    match cli.command {
        None => compile(cli.compile, cancel, progress),
        Some(Command::Explain { model }) => match program(&model) {
            Some(path) => {
                let store = Store::from_env(None)?;
                Ok(explain_program(path, &CompilerLocation::from_env(), &store, cancel)?.into())
            }
            None => Ok(explain(&described(&model, cancel, progress)?, cancel)?.into()),
        },
        Some(Command::Targets) => {
            let description = |target: &Target| match target.driver.is_run() {
                true => target.description.clone(),
                false => format!("{} ({NEVER_RUN})", target.description),
            };
            let rows = Target::all()?.into_iter().map(|target| (target.name.clone(), description(&target)));
            Ok(table(rows.collect()).into())
        }
        Some(Command::Models) => Ok(lines(PRESETS.iter().map(|preset| preset.name)).into()),
        Some(Command::Families) => Ok(lines(FAMILIES.iter().map(|family| family.name)).into()),
        Some(Command::RandomWeights { model, seed, out }) => {
            write_random_weights(&described(&model, cancel, progress)?, seed, &out, cancel)?;
            Ok(format!("{}\n", out.display()).into())
        }
    }
}

/// Finds a model whose description is wanted, and not its weights.
fn described(model: &str, cancel: &Cancel, progress: &mut ProgressView) -> Result<ModelSource, Error> {
    let mut progress = |event| progress.show(event);
    ModelSource::find_or_download(model, None, false, &HubSettings::from_env(), cancel, &mut progress)
}

/// Returns the path of a StableHLO program. Other files are models in GGUF.
fn program(text: &str) -> Option<&Path> {
    let path = Path::new(text);
    (path.is_file() && ModelSource::find(text).is_err()).then_some(path)
}

/// Formats one name per line.
fn lines(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}

/// Formats rows of two columns.
fn table(rows: Vec<(String, String)>) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    rows.iter().map(|(name, text)| format!("{name:width$}  {text}\n")).collect()
}
