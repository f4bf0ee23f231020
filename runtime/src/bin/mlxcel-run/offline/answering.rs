//! Keeps requests in the engine until every line has its answer.

use std::collections::{HashMap, HashSet};

use anyhow::{Context as _, Result};
use mlxcel_runtime::{
    Cancel, Engine, EngineError, Error, ModelRunner, StopReason, Timings, TokenLogprobs,
    engine::{Event, EventKind, RequestId},
};

use super::{
    answers::Answers,
    asking::{Asker, message},
    job::{Job, Label},
    lines::{Line, Next, Requests},
    progress::{Progress, Totals},
};

/// A run over the lines of a file.
pub(super) struct Answering<'a, R> {
    pub(super) engine: &'a mut Engine<R>,
    pub(super) asker: &'a Asker,
    /// Lines that have an answer from an earlier run.
    pub(super) done: &'a HashSet<u64>,
    /// The most requests in the engine.
    pub(super) parallel: usize,
    pub(super) answers: Answers,
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a Cancel,
    pub(super) jobs: HashMap<RequestId, Job>,
    pub(super) totals: Totals,
}

impl<R: ModelRunner> Answering<'_, R> {
    /// Answers all requests. What was answered is written also with an error.
    ///
    /// # Errors
    /// The requests cannot be read, an answer cannot be written, or the engine has stopped.
    pub(super) fn run(mut self, requests: &mut Requests) -> Result<Totals> {
        let mut is_end = false;
        loop {
            is_end = is_end || self.fill(requests)?;
            if self.cancel.is_cancelled() {
                self.totals.is_cancelled = true;
                return Ok(self.totals);
            }
            if self.jobs.is_empty() && is_end {
                return Ok(self.totals);
            }
            self.engine.step();
            self.take_events()?;
            let running = self.jobs.values().map(|job| job.tokens() as u64).sum();
            self.progress.show(&self.totals, running);
        }
    }

    /// Submits requests until as many as allowed are in the engine. Returns true at the end of the lines.
    fn fill(&mut self, requests: &mut Requests) -> Result<bool> {
        while self.jobs.len() < self.parallel && self.engine.has_room() && !self.cancel.is_cancelled() {
            let next = requests.next(self.jobs.is_empty(), self.cancel).context(
                "cannot read the requests\nhint: what was answered is written; the same command with -o resumes it",
            )?;
            match next {
                Next::Later => return Ok(false),
                Next::End => return Ok(true),
                Next::Line(line) if self.done.contains(&line.number) => self.totals.skipped += 1,
                Next::Line(line) => self.submit(&line)?,
            }
            self.progress.show(&self.totals, 0);
        }
        Ok(false)
    }

    fn submit(&mut self, line: &Line) -> Result<()> {
        let span = self.engine.trace().span("tokenize");
        let (id, asked) = self.asker.ask(line);
        drop(span);
        let label = Label::new(line, id);
        let error = match asked {
            Err(error) => error,
            Ok(asked) => match self.engine.submit(asked.request.clone()) {
                Ok(id) => {
                    self.jobs.insert(id, Job::new(label, asked));
                    return Ok(());
                }
                Err(error) if is_stop(&error) => return Err(error.into()),
                Err(error) => message(&error),
            },
        };
        self.totals.failed += 1;
        self.answers.write(&label.error(&error))
    }

    /// Takes what the last step gave, and writes what is complete.
    fn take_events(&mut self) -> Result<()> {
        let trace = self.engine.trace();
        let _span = trace.span("write the answers");
        let mut stop = None;
        while let Some(Event { id, kind }) = self.engine.next_event() {
            match kind {
                EventKind::Token { token, logprobs } => self.token(id, token, logprobs)?,
                EventKind::Finished { reason, timings } => self.finish(id, reason, timings)?,
                EventKind::Failed { error } => {
                    self.fail(id, &error)?;
                    stop = stop.or(Some(error).filter(is_stop));
                }
            }
        }
        stop.map_or(Ok(()), |error| Err(error.into()))
    }

    fn token(&mut self, id: RequestId, token: u32, logprobs: Option<TokenLogprobs>) -> Result<()> {
        let Some(job) = self.jobs.get_mut(&id) else { return Ok(()) };
        match job.token(token, logprobs) {
            Ok(false) => {}
            Ok(true) => {
                self.engine.cancel(id);
            }
            Err(error) => {
                self.engine.cancel(id);
                self.fail(id, &error)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, id: RequestId, reason: StopReason, timings: Timings) -> Result<()> {
        // One that failed while its text was read has its error.
        let Some(job) = self.jobs.remove(&id) else { return Ok(()) };
        let tokens = job.tokens() as u64;
        let label = job.label();
        match job.answer(reason, timings) {
            Ok(answer) => {
                self.totals.answered += 1;
                self.totals.tokens += tokens;
                self.answers.write(&answer)
            }
            Err(error) => {
                self.totals.failed += 1;
                self.answers.write(&label.error(&message(&error)))
            }
        }
    }

    fn fail(&mut self, id: RequestId, error: &Error) -> Result<()> {
        let Some(job) = self.jobs.remove(&id) else { return Ok(()) };
        self.totals.failed += 1;
        self.answers.write(&job.label().error(&message(error)))
    }
}

/// Returns true if the engine answers nothing more.
fn is_stop(error: &Error) -> bool {
    matches!(error, Error::Engine(EngineError::Stopped { .. } | EngineError::DeviceLost { .. }))
}
