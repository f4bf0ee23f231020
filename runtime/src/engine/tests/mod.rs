//! Tests of the engine over a scripted model.

mod ahead;
mod answers;
mod choices;
mod failures;
mod property;
mod scores;
mod sharing;
mod threads;

use std::ops::ControlFlow;

use mlxcel_artifacts::{Cancel, Digest, entry::CallSizes};

use super::{Engine, EngineSettings, EventKind, Generation, Request, RequestId, StopReason, Timings};
use crate::{
    error::Error,
    model::{ModelLimits, PoolLimits},
    scripted::ScriptedModel,
};

const VOCAB: usize = 12;

const fn ragged(rows: usize, sequences: usize, selected: usize) -> CallSizes {
    CallSizes { rows, sequences, selected, uniform: false, in_place: false }
}

fn limits(context: usize, pools: &[(Option<usize>, usize)], steps: &[CallSizes]) -> ModelLimits {
    let pools = pools.iter().map(|&(window, pages)| PoolLimits { window, pages, page_bytes: 1 }).collect();
    ModelLimits {
        model: Digest::of(b"model"),
        context,
        vocab: VOCAB,
        pools,
        steps: steps.to_vec(),
        exact: true,
    }
}

/// Limits for tests that need no others: a prompt of 8 tokens takes one step.
fn plain() -> ModelLimits {
    limits(512, &[(None, 64)], &[ragged(1, 1, 1), ragged(8, 4, 8)])
}

/// Makes a model that mostly repeats itself, and that sometimes follows the state of all it sees.
fn model(limits: ModelLimits) -> ScriptedModel {
    ScriptedModel::new(limits, |seen, state| {
        let before = seen.len().checked_sub(2).map_or(0, |index| seen[index]);
        let likely = (seen[seen.len() - 1] * 5 + before * 3 + 1) as usize % VOCAB;
        let noise = |id: usize| (state.rotate_left(5 * id as u32) % 1000) as f32 / 250.0;
        (0..VOCAB).map(|id| noise(id) + if id == likely { 2.5 } else { 0.0 }).collect()
    })
}

/// Makes a model that counts up.
fn counting(limits: ModelLimits) -> ScriptedModel {
    ScriptedModel::new(limits, |seen, _| {
        let next = (seen[seen.len() - 1] as usize + 1) % VOCAB;
        (0..VOCAB).map(|id| if id == next { 9.0 } else { 0.0 }).collect()
    })
}

fn engine(model: ScriptedModel) -> Engine<ScriptedModel> {
    engine_with(model, EngineSettings::default())
}

fn engine_with(model: ScriptedModel, settings: EngineSettings) -> Engine<ScriptedModel> {
    let clock = model.clock();
    Engine::with_clock(model, settings, clock).unwrap()
}

fn request(prompt: &[u32], max_tokens: usize) -> Request {
    Request { prompt: prompt.to_vec(), max_tokens, ..Request::default() }
}

/// Makes a prompt of so many tokens.
fn prompt(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32).map(|index| (index * index * 7 + index * seed + seed / 3) % VOCAB as u32).collect()
}

fn generate(engine: &mut Engine<ScriptedModel>, request: Request) -> Result<Generation, Error> {
    engine.generate(request, &Cancel::new(), &mut |_| ControlFlow::Continue(()))
}

/// What came out of an engine for one request.
#[derive(Debug, Default)]
struct Answer {
    tokens: Vec<u32>,
    logprobs: Vec<Vec<(u32, f32)>>,
    end: Option<Result<(StopReason, Timings), Error>>,
}

impl Answer {
    fn add(&mut self, event: EventKind) {
        assert!(self.end.is_none(), "nothing follows the end: {event:?}");
        match event {
            EventKind::Token { token, logprobs } => {
                self.tokens.push(token);
                self.logprobs.extend(logprobs.map(|logprobs| logprobs.top));
            }
            EventKind::Finished { reason, timings } => self.end = Some(Ok((reason, timings))),
            EventKind::Failed { error } => self.end = Some(Err(error)),
        }
    }

    fn reason(&self) -> StopReason {
        self.end.as_ref().unwrap().as_ref().unwrap().0
    }

    fn error(&self) -> String {
        self.end.as_ref().unwrap().as_ref().unwrap_err().to_string()
    }
}

/// Takes all events of a request.
fn answer(engine: &mut Engine<ScriptedModel>, id: RequestId) -> Answer {
    let mut answer = Answer::default();
    while let Some(event) = engine.next_event_of(id) {
        answer.add(event.kind);
    }
    answer
}

/// Runs an engine until nothing is left to do.
fn finish(engine: &mut Engine<ScriptedModel>) {
    while engine.step() {
        engine.check();
    }
    assert!(engine.is_idle());
}
