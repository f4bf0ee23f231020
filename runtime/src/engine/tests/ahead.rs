//! Steps that are begun before the last one has ended.

use super::{super::Penalties, *};
use crate::{
    device::DeviceInfo,
    engine::Speculation,
    model::{Batch, ModelRunner, SelectedRow},
    sampling::Sampling,
};

/// Returns an engine over a model that counts up, on a device that begins steps ahead.
fn counting_ahead() -> Engine<ScriptedModel> {
    engine(counting(plain()).ahead())
}

#[test]
fn all_steps_but_the_first_are_begun_ahead() {
    let mut engine = counting_ahead();
    assert_eq!(generate(&mut engine, request(&[1], 9)).unwrap().tokens, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let model = engine.runner();
    assert_eq!((model.calls().len(), model.aheads()), (9, 8), "the last one is known to be the last");
}

#[test]
fn a_step_that_nobody_waits_for_gives_nothing() {
    let mut engine = counting_ahead();
    let ends = Request { eos: vec![4], ..request(&[1], 100) };
    assert_eq!(generate(&mut engine, ends.clone()).unwrap().stop_reason, StopReason::Eos);
    assert_eq!(engine.runner().calls().len(), 4, "one for each token, and one more");
    let (short, long) = (engine.submit(ends).unwrap(), engine.submit(request(&[7], 6)).unwrap());
    finish(&mut engine);
    assert_eq!(answer(&mut engine, short).tokens, [2, 3, 4]);
    assert_eq!(answer(&mut engine, long).tokens, [8, 9, 10, 11, 0, 1]);
}

#[test]
fn a_request_that_comes_runs_after_the_step_that_was_begun() {
    let mut engine = counting_ahead();
    let first = engine.submit(request(&[1], 9)).unwrap();
    engine.step();
    let second = engine.submit(request(&[5], 2)).unwrap();
    engine.step();
    assert!(answer(&mut engine, second).tokens.is_empty());
    engine.step();
    assert_eq!(answer(&mut engine, second).tokens, [6]);
    assert_eq!(answer(&mut engine, first).tokens, [2, 3, 4]);
}

#[test]
fn a_cancelled_request_leaves_its_step_to_the_others() {
    let mut engine = counting_ahead();
    let ids = [1, 5].map(|token| engine.submit(request(&[token], 9)).unwrap());
    engine.step();
    assert!(engine.cancel(ids[0]));
    engine.step();
    assert_eq!(answer(&mut engine, ids[1]).tokens, [6, 7]);
    assert!(engine.cancel(ids[1]));
    assert!(!engine.step(), "what was begun is dropped");
    engine.clear_prefix_cache();
    assert!(engine.usage().pools.iter().all(|pool| pool.free == pool.pages));
}

#[test]
fn whoever_needs_more_than_the_largest_logit_is_waited_for() {
    let plain = || request(&[1], 5);
    let sampling = Sampling { temperature: 0.5, ..Sampling::default() };
    let penalties = Penalties { presence: 1.0, ..Penalties::default() };
    for request in [
        Request { sampling: Some(sampling), ..plain() },
        Request { penalties, ..plain() },
        Request { logprobs: Some(1), ..plain() },
        Request { logit_bias: vec![(3, 1.0)], ..plain() },
        Request { speculate: Some(Speculation::default()), ..plain() },
    ] {
        let mut engine = counting_ahead();
        let beside = engine.submit(plain()).unwrap();
        engine.submit(request).unwrap();
        finish(&mut engine);
        assert_eq!(engine.runner().aheads(), 0);
        assert_eq!(answer(&mut engine, beside).tokens, [2, 3, 4, 5, 6]);
    }
}

#[test]
fn scores_come_after_the_step_that_was_begun() {
    let mut engine = counting_ahead();
    let id = engine.submit(request(&[1], 9)).unwrap();
    engine.step();
    let scores = engine.score(&[5, 6, 7], 0).unwrap();
    assert_eq!(scores.len(), 3);
    finish(&mut engine);
    assert_eq!(answer(&mut engine, id).tokens, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn what_follows_a_step_that_fails_is_dropped() {
    for failing in [2, 3] {
        let mut engine = engine(counting(plain()).ahead().failing([failing]));
        let id = engine.submit(request(&[1], 9)).unwrap();
        finish(&mut engine);
        let answer = answer(&mut engine, id);
        assert_eq!(answer.tokens.len(), failing);
        assert!(answer.error().starts_with("a step of 1 request failed"), "{}", answer.error());
        assert_eq!(generate(&mut engine, request(&[1], 3)).unwrap().tokens, [2, 3, 4]);
    }
}

/// A model whose device fails to begin steps ahead.
struct Refusing(ScriptedModel);

impl ModelRunner for Refusing {
    fn limits(&self) -> &ModelLimits {
        self.0.limits()
    }
    fn device(&self) -> &DeviceInfo {
        self.0.device()
    }
    fn begin(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        self.0.begin(batch)
    }
    fn begin_next(&mut self, _: &Batch<'_>) -> Result<bool, Error> {
        Err(Error::NoTokens)
    }
    fn end(&mut self) -> Result<Vec<SelectedRow>, Error> {
        self.0.end()
    }
    fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
        self.0.logits(selected)
    }
}

#[test]
fn a_step_that_cannot_be_begun_ahead_is_begun_in_its_turn() {
    let mut engine = Engine::new(Refusing(counting(plain())), EngineSettings::default()).unwrap();
    let generation =
        engine.generate(request(&[1], 4), &Cancel::new(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(generation.tokens, [2, 3, 4, 5]);
}

#[test]
fn a_request_that_no_pages_are_left_for_stops_nothing() {
    // One request gets both pages.
    let mut engine = engine(counting(limits(128, &[(None, 2)], &[ragged(8, 4, 8)])).ahead());
    let first = engine.submit(request(&[1], 100)).unwrap();
    engine.step();
    let second = engine.submit(request(&[5], 100)).unwrap();
    (0..10).for_each(|_| assert!(engine.step()));
    assert_eq!(engine.runner().aheads(), 11);
    finish(&mut engine);
    assert_eq!([first, second].map(|id| answer(&mut engine, id).tokens.len()), [100, 100]);
}

#[test]
fn the_last_position_of_the_context_is_the_last_step() {
    let mut engine = engine(counting(limits(5, &[(None, 1)], &[ragged(1, 1, 1)])).ahead());
    let generation = generate(&mut engine, request(&[1, 2], 99)).unwrap();
    // A step has one row, so that nothing is begun ahead.
    assert_eq!((generation.tokens.as_slice(), engine.runner().aheads()), (&[3, 4, 5, 6][..], 0));
    let mut engine = super::engine(counting(limits(5, &[(None, 1)], &[ragged(2, 1, 1)])).ahead());
    let generation = generate(&mut engine, request(&[1, 2], 99)).unwrap();
    assert_eq!((generation.tokens.as_slice(), engine.runner().aheads()), (&[3, 4, 5, 6][..], 2));
}
