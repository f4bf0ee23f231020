//! Random traffic: every answer is what the request gives alone, no page is lost, no request starves.

use std::collections::HashMap;

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::{super::Penalties, *};
use crate::{engine::Speculation, error::EngineError, sampling::Sampling};

const CONTEXT: usize = 230;

/// A run of an engine.
#[derive(Debug, Clone)]
struct Traffic {
    limits: ModelLimits,
    prefix_cache: bool,
    requests: Vec<Arrival>,
    failing: Vec<usize>,
    /// Whether the device begins steps before the last one has ended.
    is_ahead: bool,
}

/// A request, the step it arrives at, and how many steps later it is cancelled.
#[derive(Debug, Clone)]
struct Arrival {
    step: usize,
    request: Request,
    cancel: Option<usize>,
}

fn model_limits() -> impl Strategy<Value = ModelLimits> {
    let pools = prop_oneof![
        (4..12usize).prop_map(|pages| vec![(None, pages)]),
        (4..12usize, 20..150usize, 3..9usize)
            .prop_map(|(full, window, pages)| vec![(None, full), (Some(window), pages)]),
        (1..130usize, 3..9usize).prop_map(|(window, pages)| vec![(Some(window), pages)]),
    ];
    let uniform =
        |rows, sequences, selected| CallSizes { rows, sequences, selected, uniform: true, in_place: false };
    let steps = prop_oneof![
        Just(vec![ragged(1, 1, 1)]),
        Just(vec![ragged(1, 1, 1), ragged(8, 8, 8), ragged(48, 8, 8)]),
        Just(vec![ragged(16, 3, 16)]),
        Just(vec![uniform(4, 4, 4), ragged(40, 1, 1)]),
        Just(vec![uniform(32, 4, 12), uniform(2, 2, 2)]),
        Just(vec![ragged(64, 4, 0), ragged(5, 5, 5)]),
    ];
    (pools, steps).prop_map(|(pools, steps)| limits(CONTEXT, &pools, &steps))
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let text = (0..3u32, 0..180usize, 0..1000u32, 1..30usize)
        .prop_map(|(family, shared, seed, own)| [prompt(shared, 7 * family + 1), prompt(own, seed)].concat());
    let sampling = prop_oneof![
        Just(None),
        (0..50u64).prop_map(|seed| Some(Sampling { temperature: 0.5, seed, ..Sampling::default() }))
    ];
    let speculation = prop_oneof![
        Just(None),
        (1..3usize, 1..9usize)
            .prop_map(|(ngram_min, draft_max)| { Some(Speculation { ngram_min, ngram_max: 3, draft_max }) })
    ];
    let eos = prop_oneof![Just(vec![]), Just(vec![11])];
    let cancel = prop_oneof![3 => Just(None), 1 => (0..30usize).prop_map(Some)];
    let logprobs = prop_oneof![Just(None), (0..3usize).prop_map(Some)];
    // Penalties make a token depend on all before it.
    let penalties = prop_oneof![
        2 => Just(Penalties::default()),
        1 => (-1..3i8).prop_map(|presence| Penalties {
            presence: f32::from(presence),
            frequency: 0.5,
            repetition: 1.1
        })
    ];
    let request = (text, 0..50usize, eos, sampling, logprobs, penalties, speculation);
    (0..60usize, request, cancel).prop_map(|(step, parts, cancel)| {
        let (prompt, max_tokens, eos, sampling, logprobs, penalties, speculate) = parts;
        let request = Request {
            prompt,
            max_tokens,
            eos,
            sampling,
            logprobs,
            penalties,
            speculate,
            ..Request::default()
        };
        Arrival { step, request, cancel }
    })
}

/// Returns the same request for tokens with the largest logits alone.
fn greedy(request: &Request) -> Request {
    let Request { prompt, max_tokens, eos, .. } = request.clone();
    Request { prompt, max_tokens, eos, ..Request::default() }
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let failing = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(0..150usize, 1..4)];
    let requests = prop::collection::vec(arrival(), 1..10);
    (model_limits(), any::<bool>(), requests, failing, any::<bool>()).prop_map(
        |(limits, prefix_cache, mut requests, failing, is_ahead)| {
            if is_ahead {
                // Beside others no step is begun ahead.
                requests.iter_mut().skip(1).for_each(|arrival| arrival.request = greedy(&arrival.request));
            }
            Traffic { limits, prefix_cache, requests, failing, is_ahead }
        },
    )
}

/// Returns what a request gives alone: with room for everything, no earlier request and no drafts.
fn alone(limits: &ModelLimits, request: &Request) -> Generation {
    let pools = limits.pools.iter().map(|pool| PoolLimits { pages: 64, ..*pool }).collect();
    let steps = vec![ragged(64, 1, 1)];
    let mut engine = engine(model(ModelLimits { pools, steps, ..limits.clone() }));
    generate(&mut engine, Request { speculate: None, ..request.clone() }).unwrap()
}

/// The engine and what came out of it.
struct Run<'a> {
    traffic: &'a Traffic,
    engine: Engine<ScriptedModel>,
    ids: HashMap<RequestId, usize>,
    answers: Vec<Answer>,
}

impl Run<'_> {
    fn submit(&mut self, step: usize) {
        for (index, arrival) in self.traffic.requests.iter().enumerate() {
            if arrival.step == step {
                match self.engine.submit(arrival.request.clone()) {
                    Ok(id) => {
                        self.ids.insert(id, index);
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Engine(EngineError::NeverFits { .. })), "{error}");
                        self.answers[index].end = Some(Err(error));
                    }
                }
            }
        }
        let is_due = |index: &usize| {
            let arrival = &self.traffic.requests[*index];
            arrival.cancel.is_some_and(|after| arrival.step + after == step)
        };
        let cancelled: Vec<RequestId> =
            self.ids.iter().filter(|(_, index)| is_due(index)).map(|(id, _)| *id).collect();
        for id in cancelled {
            let is_over = self.answers[self.ids[&id]].end.is_some();
            assert_ne!(self.engine.cancel(id), is_over);
            self.engine.check();
        }
    }

    fn step(&mut self) {
        let most = self.traffic.limits.steps.iter().filter(|size| size.selected > 0);
        let most = most.map(|size| size.sequences.min(size.rows)).max().unwrap() as u64;
        let (steps, is_idle) = (self.engine.runner.calls().len(), self.engine.is_idle());
        let ran = self.engine.step();
        assert_eq!(ran, !is_idle, "a step makes progress while there is a request");
        if !self.traffic.is_ahead {
            assert_eq!(self.engine.runner.calls().len(), steps + usize::from(ran));
        }
        self.engine.check();
        assert!(self.engine.gaps().iter().all(|(_, gap)| *gap < most), "{:?}", self.engine.gaps());
        while let Some(event) = self.engine.next_event() {
            self.answers[self.ids[&event.id]].add(event.kind);
        }
    }

    fn compare(&self) {
        for (arrival, answer) in self.traffic.requests.iter().zip(&self.answers) {
            let end = answer.end.as_ref().unwrap();
            if matches!(end, Err(Error::Engine(EngineError::NeverFits { .. }))) {
                continue;
            }
            let expected = alone(&self.traffic.limits, &arrival.request);
            assert!(expected.tokens.starts_with(&answer.tokens));
            assert!(expected.logprobs.starts_with(&answer.logprobs));
            match end {
                Ok((StopReason::Cancelled, _)) => assert!(arrival.cancel.is_some()),
                Ok((reason, timings)) => {
                    assert_eq!((&answer.tokens, *reason), (&expected.tokens, expected.stop_reason));
                    assert_eq!(timings.prompt_tokens + timings.cached_tokens, arrival.request.prompt.len());
                    let later = answer.tokens.len().saturating_sub(1);
                    assert_eq!(timings.steps + timings.accepted, later);
                }
                Err(error) => {
                    assert!(matches!(error, Error::Engine(EngineError::StepFailed { .. })), "{error}");
                    assert!(!self.traffic.failing.is_empty());
                }
            }
        }
    }
}

/// Runs traffic to its end and compares every answer. Returns cached tokens, accepted drafts, failures, whether a request
/// waited, and how many steps were begun before the last one had ended.
fn run(traffic: &Traffic) -> [usize; 5] {
    let settings = EngineSettings { waiting: 99, failures: 1000, prefix_cache: traffic.prefix_cache };
    let model = model(traffic.limits.clone()).failing(traffic.failing.iter().copied());
    let model = if traffic.is_ahead { model.ahead() } else { model };
    let answers = traffic.requests.iter().map(|_| Answer::default()).collect();
    let mut run = Run { traffic, engine: engine_with(model, settings), ids: HashMap::new(), answers };
    // A step runs at least one row, and no row that is accepted is run twice.
    let work = |arrival: &Arrival| arrival.request.prompt.len() + arrival.request.max_tokens;
    let most = 100 + traffic.requests.iter().map(work).sum::<usize>();
    let mut waited = 0;
    for step in 0.. {
        assert!(step < most, "no request starves");
        run.submit(step);
        waited = waited.max(run.engine.usage().waiting);
        run.step();
        if step > 60 && run.engine.is_idle() {
            break;
        }
    }
    run.compare();
    run.engine.clear_prefix_cache();
    assert!(run.engine.usage().pools.iter().all(|pool| pool.free == pool.pages), "every page is free");
    let mut seen = [0, 0, 0, waited, run.engine.runner().aheads()];
    for answer in &run.answers {
        match answer.end.as_ref().unwrap() {
            Ok((_, timings)) => {
                seen[0] += timings.cached_tokens;
                seen[1] += timings.accepted;
            }
            Err(error) => {
                seen[2] += usize::from(matches!(error, Error::Engine(EngineError::StepFailed { .. })))
            }
        }
    }
    seen
}

#[test]
fn every_answer_is_what_the_request_gives_alone() {
    let config = Config { failure_persistence: None, ..Config::with_cases(320) };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let seen = std::cell::Cell::new([0; 5]);
    let result = runner.run(&traffic(), |traffic| {
        let more = run(&traffic);
        seen.set(std::array::from_fn(|index| seen.get()[index] + more[index]));
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    // The traffic has what it is meant to have.
    let [cached, accepted, failed, waited, ahead] = seen.get();
    assert!(cached > 1000 && accepted > 150 && failed > 20 && waited > 100, "{:?}", seen.get());
    assert!(ahead > 1000, "{:?}", seen.get());
}
