//! Answers of single requests, and of several at a time.

use std::time::Duration;

use super::*;
use crate::{engine::Speculation, sampling::Sampling};

#[test]
fn an_answer_and_its_times() {
    let mut engine = engine(counting(plain()));
    let found = generate(&mut engine, request(&prompt(10, 3), 4)).unwrap();
    let first = (prompt(10, 3)[9] + 1) % 12;
    assert_eq!(found.tokens, [first, first + 1, first + 2, first + 3].map(|token| token % 12));
    assert_eq!(found.stop_reason, StopReason::Length);
    // Chunks of 8 and 2 rows, then three rows, each in a call of the smallest size that fits.
    assert_eq!(engine.runner().calls(), [(1, 8), (1, 2), (0, 1), (0, 1), (0, 1)]);
    let expected = Timings {
        prompt_tokens: 10,
        prefill: 2 * ScriptedModel::CALL + 10 * ScriptedModel::ROW,
        steps: 3,
        decode: 3 * (ScriptedModel::CALL + ScriptedModel::ROW),
        ..Timings::default()
    };
    assert_eq!(found.timings, expected);
}

#[test]
fn reasons_to_end() {
    let reason = |request: Request| {
        let limits = limits(16, &[(None, 1)], &[ragged(8, 4, 8)]);
        let found = generate(&mut engine(counting(limits)), request).unwrap();
        (found.tokens, found.stop_reason)
    };
    let with_eos = Request { eos: vec![5, 7], ..request(&[3], 9) };
    assert_eq!(reason(with_eos), (vec![4, 5], StopReason::Eos));
    assert_eq!(reason(request(&[3], 2)), (vec![4, 5], StopReason::Length));
    assert_eq!(reason(request(&[3], 0)), (vec![], StopReason::Length));
    assert_eq!(reason(request(&[3; 16], 9)), (vec![4], StopReason::Context));
    assert_eq!(reason(request(&[3; 14], 9)), (vec![4, 5, 6], StopReason::Context));
    let speculating = Request { speculate: Some(Speculation::default()), ..request(&[3; 10], 99) };
    assert_eq!(reason(speculating), (vec![4, 5, 6, 7, 8, 9, 10], StopReason::Context));
}

#[test]
fn on_token_stops_and_a_cancellation_is_seen() {
    let mut engine = engine(counting(plain()));
    let (cancel, mut seen) = (Cancel::new(), vec![]);
    // The prompt repeats, so that several tokens come out of one step.
    let text: Vec<u32> = (0..24).map(|index| index % 12).collect();
    let request = Request { speculate: Some(Speculation::default()), ..request(&text, 20) };
    let mut on_token = |token| {
        seen.push(token);
        if token == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let found = engine.generate(request.clone(), &cancel, &mut on_token).unwrap();
    assert_eq!((found.tokens, found.stop_reason), (vec![0, 1, 2, 3], StopReason::Stop));
    assert_eq!(seen, [0, 1, 2, 3]);
    assert!(engine.next_event().is_none());

    let eos = Request { eos: vec![0], ..request.clone() };
    let found = engine.generate(eos, &cancel, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((found.tokens, found.stop_reason), (vec![0], StopReason::Eos));

    cancel.cancel();
    let found = engine.generate(request, &cancel, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((found.tokens, found.stop_reason), (vec![], StopReason::Cancelled));
    assert!(engine.is_idle());
}

#[test]
fn drafts_save_steps_and_change_nothing() {
    let text = prompt(40, 5);
    let sampled = Some(Sampling { temperature: 0.4, seed: 3, ..Sampling::default() });
    for (sampling, logprobs) in [(None, None), (None, Some(2)), (sampled, None), (sampled, Some(1))] {
        let plain_request = Request { sampling, logprobs, ..request(&text, 60) };
        let speculate = Some(Speculation { ngram_min: 1, ..Speculation::default() });
        let speculating = Request { speculate, ..plain_request.clone() };
        let expected = generate(&mut engine(model(plain())), plain_request).unwrap();
        let found = generate(&mut engine(model(plain())), speculating).unwrap();
        assert_eq!((&found.tokens, &found.logprobs), (&expected.tokens, &expected.logprobs));
        assert_eq!(expected.timings.steps, 59);
        let Timings { steps, accepted, drafted, .. } = found.timings;
        assert_eq!(steps + accepted, 59);
        assert!(accepted > 5 && drafted > accepted, "{accepted} of {drafted} drafts accepted");
    }
}

#[test]
fn no_drafts_where_one_row_is_selected() {
    let limits = limits(128, &[(None, 2)], &[ragged(8, 4, 1)]);
    let request = Request { speculate: Some(Speculation::default()), ..request(&[1, 2, 1, 2, 1, 2], 20) };
    let found = generate(&mut engine(counting(limits)), request).unwrap();
    assert_eq!((found.timings.drafted, found.tokens.len()), (0, 20));
}

#[test]
fn requests_share_steps() {
    let mut engine = engine(model(plain()));
    let prompts = [prompt(3, 1), prompt(20, 2), prompt(9, 3), prompt(1, 4), prompt(30, 5)];
    let ids: Vec<_> = prompts.iter().map(|text| engine.submit(request(text, 12)).unwrap()).collect();
    finish(&mut engine);
    for (id, text) in ids.into_iter().zip(&prompts) {
        let expected = generate(&mut super::engine(model(plain())), request(text, 12)).unwrap();
        assert_eq!(answer(&mut engine, id).tokens, expected.tokens);
    }
    let rows: usize = engine.runner().calls().iter().map(|(_, rows)| rows).sum();
    assert_eq!(rows, 63 + 5 * 11);
    assert!(engine.runner().calls().len() < 63, "fewer calls than tokens");
}

#[test]
fn waiting_counts_as_queued() {
    let limits = limits(64, &[(None, 1)], &[ragged(8, 4, 8)]);
    let mut engine = engine(counting(limits));
    engine.submit(request(&[1], 3)).unwrap();
    let second = engine.submit(request(&[1], 1)).unwrap();
    finish(&mut engine);
    let (_, timings) = answer(&mut engine, second).end.unwrap().unwrap();
    let call = ScriptedModel::CALL + ScriptedModel::ROW;
    assert_eq!((timings.queued, timings.prefill, timings.decode), (3 * call, call, Duration::ZERO));
}

#[test]
fn a_prompt_is_not_starved_by_generation() {
    // Every call takes either four requests that generate, or one prompt.
    let uniform = CallSizes { rows: 4, sequences: 4, selected: 4, uniform: true, in_place: false };
    let limits = limits(512, &[(None, 64)], &[uniform, ragged(64, 1, 1)]);
    let mut engine = engine(counting(limits));
    for _ in 0..3 {
        engine.submit(request(&[1], 100)).unwrap();
    }
    engine.step();
    let id = engine.submit(request(&prompt(256, 1), 1)).unwrap();
    let mut steps = 0;
    while engine.next_event_of(id).is_none() {
        engine.step();
        steps += 1;
        assert!(engine.gaps().iter().all(|(_, gap)| *gap < 4));
    }
    // Chunks of 64 in turn with steps that also give the prompt one row each.
    assert!(steps <= 10, "{steps} steps");
}
