//! Texts that wait for their scores, on an engine's thread.

use std::collections::VecDeque;

use mlxcel_artifacts::Cancel;

use super::{core::Engine, score::Scoring};
use crate::{
    error::{EngineError, Error},
    model::ModelRunner,
    sampling::{TokenLogprobs, logprobs},
};

/// Takes the log-probabilities of a text's tokens, on the engine's thread, which waits for it.
pub type ScoreSink = Box<dyn FnOnce(Result<Vec<TokenLogprobs>, Error>) + Send>;

/// A text to be scored.
pub(super) struct ScoreJob {
    pub(super) text: Vec<u32>,
    /// The first token whose log-probability is wanted.
    pub(super) from: usize,
    /// How many of the most likely ids come with each token.
    pub(super) top: usize,
    pub(super) sink: ScoreSink,
    pub(super) cancel: Cancel,
}

/// Texts that wait for their scores. One is scored at a time, a piece between two steps of the engine.
#[derive(Default)]
pub(super) struct ScoreQueue {
    waiting: VecDeque<ScoreJob>,
    running: Option<Running>,
}

struct Running {
    job: ScoreJob,
    scoring: Scoring,
    found: Vec<TokenLogprobs>,
}

impl ScoreQueue {
    pub(super) fn push(&mut self, job: ScoreJob) {
        self.waiting.push_back(job);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_none()
    }

    /// Returns whether a text waits for pages that requests have.
    pub(super) fn is_blocked(&self) -> bool {
        self.running.is_none() && !self.waiting.is_empty()
    }

    /// Runs a piece of a text. Returns how many texts have begun or ended without.
    pub(super) fn step<R: ModelRunner>(&mut self, engine: &mut Engine<R>) -> usize {
        let mut begun = 0;
        while self.running.is_none() {
            let Some(job) = self.waiting.pop_front() else { break };
            if job.cancel.is_cancelled() {
                (job.sink)(Err(EngineError::Cancelled.into()));
                begun += 1;
                continue;
            }
            match engine.begin_token_logprobs(&job.text, job.from) {
                Ok(scoring) => self.running = Some(Running { job, scoring, found: Vec::new() }),
                // When requests have ended, there is room.
                Err(Error::Engine(EngineError::Busy { running: 1.. })) => {
                    self.waiting.push_front(job);
                    break;
                }
                Err(error) => (job.sink)(Err(error)),
            }
            begun += 1;
        }
        if let Some(mut running) = self.running.take() {
            match running.step(engine) {
                Ok(false) => self.running = Some(running),
                Ok(true) => running.end(engine, Ok(())),
                Err(error) => running.end(engine, Err(error)),
            }
        }
        begun
    }

    /// Ends all texts with an error.
    pub(super) fn close<R: ModelRunner>(&mut self, engine: &mut Engine<R>) {
        if let Some(running) = self.running.take() {
            running.end(engine, Err(EngineError::Closed.into()));
        }
        self.waiting.drain(..).for_each(|job| (job.sink)(Err(EngineError::Closed.into())));
    }
}

impl Running {
    /// Runs a piece. Returns whether it was the last.
    fn step<R: ModelRunner>(&mut self, engine: &mut Engine<R>) -> Result<bool, Error> {
        let Self { job, scoring, found } = self;
        if job.cancel.is_cancelled() {
            return Err(EngineError::Cancelled.into());
        }
        engine.step_score(scoring, &mut |index, row| {
            found.push(logprobs(&row, job.text[index + 1], job.top)?);
            Ok(())
        })?;
        Ok(scoring.is_done())
    }

    fn end<R: ModelRunner>(self, engine: &mut Engine<R>, result: Result<(), Error>) {
        engine.end_score(self.scoring);
        (self.job.sink)(result.map(|()| self.found));
    }
}
