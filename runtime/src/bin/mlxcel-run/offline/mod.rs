//! `-f requests.jsonl`: answers a file of requests, several at a time.

mod answering;
mod answers;
mod asking;
mod fields;
mod job;
mod lines;
mod progress;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use mlxcel_artifacts::{Bundle, INTERRUPTED};
use mlxcel_runtime::CheckpointFiles;

use self::{
    answering::Answering,
    answers::{AnswerFile, Answers},
    asking::Asker,
    lines::{Lines, Requests},
    progress::{Progress, Totals, summary},
};
use crate::{
    interrupt::Interrupt,
    model::{open_engine, open_weights},
    options::Options,
    render,
    stdio::{is_interactive, note},
};

/// The requests of a run, and what is known of them before it.
struct Opened {
    requests: Requests,
    answers: Answers,
    /// The number of requests, if the file can be read twice.
    count: Option<u64>,
    /// Lines that have an answer from an earlier run.
    done: HashSet<u64>,
}

/// Answers the requests of the options.
pub(crate) fn run(
    options: &Options,
    start: Instant,
    bundle: Result<Bundle>,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let bundle = bundle?;
    let weights = open_weights(options, &bundle)?;
    let asker = Asker::new(options, &CheckpointFiles::new(&bundle, options.checkpoint()))?;
    options.check_context(&bundle)?;
    let Opened { mut requests, answers, count, done } = open(options)?;
    if count == Some(done.len() as u64) {
        let totals = Totals { skipped: done.len() as u64, ..Totals::default() };
        note(&summary(&totals, None, Duration::ZERO));
        return Ok(ExitCode::SUCCESS);
    }
    let mut engine = open_engine(options, &bundle, weights)?;
    let load = start.elapsed();
    let parallel = options.parallel();
    note(&render::cache(engine.limits()));
    let sequences = engine.limits().sequences();
    if options.parallel.is_some() && parallel > sequences {
        note(&render::more_than_a_call(parallel, sequences));
    }
    let device = engine.device().name.clone();
    let _answering = interrupt.answering();
    let progress = Progress::start(count);
    let answering = Answering {
        engine: &mut engine,
        asker: &asker,
        done: &done,
        parallel,
        answers,
        progress: &progress,
        cancel: &interrupt.cancel,
        jobs: HashMap::new(),
        totals: Totals::default(),
    };
    let totals = answering.run(&mut requests);
    let took = progress.end();
    let totals = totals?;
    note(&summary(&totals, Some((&device, load)), took));
    Ok(match totals {
        Totals { is_cancelled: true, .. } => ExitCode::from(INTERRUPTED),
        Totals { failed: 0, .. } => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Opens requests and answers, and finds out what is done.
fn open(options: &Options) -> Result<Opened> {
    let Some(path) = &options.file else {
        if is_interactive() {
            bail!(
                "no requests for --parallel, expected a JSON object in each line\n\
                 hint: give a file of them with -f, or standard input that is not a terminal"
            );
        }
        let (requests, done) = (Requests::pipe(Lines::new(io::stdin())), HashSet::new());
        return Ok(Opened { requests, answers: fresh(options, "standard input")?, count: None, done });
    };
    let file = open_requests(path)?;
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        let (requests, done) = (Requests::pipe(Lines::new(file)), HashSet::new());
        let answers = fresh(options, &path.display().to_string())?;
        return Ok(Opened { requests, answers, count: None, done });
    }
    let answer_file = options.answer_file()?.map(AnswerFile::open).transpose()?;
    let earlier = answer_file.as_ref().map(AnswerFile::earlier).transpose()?.unwrap_or_default();
    let (count, done) = earlier.survey(Lines::new(open_requests(path)?)).with_context(|| reading(path))?;
    let answers = answer_file.map_or_else(|| Ok(Answers::stdout()), |file| file.resume(&earlier, &done))?;
    Ok(Opened { requests: Requests::File(Lines::new(file)), answers, count: Some(count), done })
}

fn open_requests(path: &Path) -> Result<File> {
    File::open(path).with_context(|| reading(path))
}

fn reading(path: &Path) -> String {
    format!("cannot read {}\nhint: -f names a file with a request in each line", path.display())
}

/// Opens the answers to requests that come once, whose lines cannot be compared with those of an earlier run.
fn fresh(options: &Options, from: &str) -> Result<Answers> {
    let Some(path) = options.answer_file()? else { return Ok(Answers::stdout()) };
    let file = AnswerFile::open(path)?;
    let earlier = file.earlier()?;
    if !earlier.is_empty() {
        bail!(
            "{} has answers, and {from} is read only once, expected a file of requests to resume\n\
             hint: give the requests as a file with -f, or choose another file for -o",
            path.display()
        );
    }
    file.resume(&earlier, &HashSet::new())
}
