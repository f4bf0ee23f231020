//! Refusals, failures of the device, and cancellation.

use std::{error::Error as _, sync::Arc};

use super::{choices::places, *};
use crate::{engine::Speculation, error::EngineError, sampling::Sampling};

#[test]
fn requests_are_refused_one_by_one() {
    let limits = limits(200, &[(None, 2), (Some(32), 4)], &[ragged(8, 4, 8)]);
    let mut engine = engine(counting(limits));
    let good = engine.submit(request(&[1], 3)).unwrap();
    let mut refused = |request: Request| engine.submit(request).unwrap_err().to_string();
    assert!(refused(request(&[], 1)).starts_with("the prompt has no tokens, expected at least one\nhint: "));
    assert!(
        refused(request(&[1, 12], 1))
            .starts_with("token 2 of the prompt has the id 12, expected 0 to 11\nhint: ")
    );
    assert!(refused(request(&[1; 201], 1)).starts_with("201 tokens, expected at most 200"));
    assert_eq!(
        refused(request(&[1; 120], 10)),
        "the request needs 3 pages, expected at most 2\n\
         hint: shorten the prompt, lower the largest number of tokens, or give a larger --cache-size"
    );
    let bad = Speculation { draft_max: 0, ..Speculation::default() };
    assert!(refused(Request { speculate: Some(bad), ..request(&[1], 1) }).starts_with("draft_max is 0"));
    let bad = Sampling { temperature: -1.0, ..Sampling::default() };
    assert!(refused(Request { sampling: Some(bad), ..request(&[1], 1) }).starts_with("temperature is -1"));
    finish(&mut engine);
    assert_eq!(answer(&mut engine, good).tokens, [2, 3, 4]);
    // The last token is not written, so this fits exactly.
    assert!(engine.submit(request(&[1; 120], 9)).is_ok());
}

#[test]
fn a_full_queue_refuses() {
    let settings = EngineSettings { waiting: 2, ..EngineSettings::default() };
    let mut engine = engine_with(counting(plain()), settings);
    engine.submit(request(&[1], 1)).unwrap();
    engine.submit(request(&[1], 1)).unwrap();
    assert!(!engine.has_room());
    assert_eq!(
        engine.submit(request(&[1], 1)).unwrap_err().to_string(),
        "the queue is full: 2 requests wait, expected fewer than 2\n\
         hint: submit the request again when another one has ended, or let more wait"
    );
    engine.step();
    engine.submit(request(&[1], 1)).unwrap();
}

#[test]
fn limits_without_a_step_are_refused() {
    let message = |limits| {
        let model = counting(limits);
        Engine::new(model, EngineSettings::default()).unwrap_err().to_string()
    };
    let hint = "hint: compile the bundle again with this version";
    assert_eq!(
        message(limits(8, &[(None, 1)], &[ragged(8, 4, 0)])),
        format!("the model's limits: 1 sizes of a step, expected one with a selected row\n{hint}")
    );
    assert_eq!(
        message(limits(8, &[], &[ragged(8, 4, 1)])),
        format!("the model's limits: no pool of pages, expected one for each window size\n{hint}")
    );
    assert!(message(limits(0, &[(None, 1)], &[ragged(8, 4, 1)])).contains("a context of 0"));
    assert!(message(limits(8, &[(Some(0), 1)], &[ragged(8, 4, 1)])).contains("a window of 0"));
}

#[test]
fn a_failed_step_ends_its_requests_and_no_others() {
    let mut engine = engine(model(limits(256, &[(None, 3)], &[ragged(8, 4, 8)])).failing([2]));
    let short = engine.submit(request(&prompt(4, 1), 30)).unwrap();
    let long = engine.submit(request(&prompt(60, 2), 30)).unwrap();
    let waiting = engine.submit(request(&prompt(70, 3), 5)).unwrap();
    finish(&mut engine);
    for id in [short, long] {
        let answer = answer(&mut engine, id);
        assert_eq!(answer.error(), "a step of 2 requests failed\nhint: submit the request again");
        let Some(Err(error)) = answer.end else { unreachable!("it failed") };
        assert_eq!(error.source().unwrap().to_string().lines().next(), Some("cannot run step 2"));
    }
    let expected = generate(&mut super::engine(model(plain())), request(&prompt(70, 3), 5)).unwrap();
    assert_eq!(answer(&mut engine, waiting).tokens, expected.tokens);
    engine.clear_prefix_cache();
    assert_eq!(engine.usage().pools[0].free, 3);
}

#[test]
fn the_engine_stops_after_failures_in_a_row() {
    let settings = EngineSettings { failures: 2, ..EngineSettings::default() };
    let mut engine = engine_with(counting(plain()).failing([0, 2, 3]), settings);
    let mut run = |count: usize| {
        let id = engine.submit(request(&[1], count)).unwrap();
        finish(&mut engine);
        answer(&mut engine, id)
    };
    assert!(run(1).end.unwrap().is_err());
    assert_eq!(run(1).reason(), StopReason::Length);
    assert!(run(1).error().starts_with("a step of 1 request failed"));
    // The step takes the first four; the fifth ends because there will be no more steps.
    let ids: Vec<_> = (0..5).map(|_| engine.submit(request(&[1], 2)).unwrap()).collect();
    finish(&mut engine);
    assert!(answer(&mut engine, ids[3]).error().starts_with("a step of 4 requests failed"));
    let expected = "2 steps failed one after another: the engine has stopped\nhint: load the model again";
    assert_eq!(answer(&mut engine, ids[4]).error(), expected);
    assert_eq!(engine.submit(request(&[1], 1)).unwrap_err().to_string(), expected);
    engine.clear_prefix_cache();
    assert_eq!(engine.usage().pools[0].free, 64);
    assert!(engine.usage().is_stopped);
}

#[test]
fn a_failed_read_ends_its_request_alone() {
    let mut engine = engine(counting(plain()).failing_reads([1]));
    let sampling = Some(Sampling { temperature: 0.01, ..Sampling::default() });
    let sampled = Request { sampling, ..request(&[1], 3) };
    let ids = [sampled.clone(), sampled, request(&[1], 3)].map(|request| engine.submit(request).unwrap());
    finish(&mut engine);
    assert_eq!(answer(&mut engine, ids[0]).tokens, [2, 3, 4]);
    assert!(answer(&mut engine, ids[1]).error().starts_with("a step of 1 request failed"));
    assert_eq!(answer(&mut engine, ids[2]).tokens, [2, 3, 4]);
}

#[test]
fn logits_that_are_no_numbers_end_a_request_and_count_as_no_failure() {
    let settings = EngineSettings { failures: 1, ..EngineSettings::default() };
    let script = |seen: &[u32], _: u64| {
        let mut logits = vec![0.0; VOCAB];
        match seen {
            // A token that the grammar excludes.
            [7, ..] => logits[5] = f32::NAN,
            // An answer that begins well, and whose drafts are right.
            [8, ..] if seen.len() < 5 => logits[8] = 60.0,
            [8, ..] => logits.fill(f32::NAN),
            _ => {}
        }
        logits
    };
    let allowed: [&[u32]; 9] = [&[0, 8]; 9];
    let sampling = Some(Sampling::default());
    let speculate = Some(Speculation { ngram_min: 1, ..Speculation::default() });
    let ways = [
        Request::default(),
        Request { sampling, ..Request::default() },
        Request { grammar: places(&allowed), ..Request::default() },
        Request { sampling, grammar: places(&allowed), ..Request::default() },
        Request { speculate, ..Request::default() },
        Request { logit_bias: vec![(0, 1.0)], logprobs: Some(1), ..Request::default() },
    ];
    for way in ways {
        let mut engine = engine_with(ScriptedModel::new(plain(), script), settings);
        let prompts: [&[u32]; 3] = [&[7], &[8, 8, 8], &[1]];
        let ids = prompts.map(|prompt| {
            let request = Request { prompt: prompt.to_vec(), max_tokens: 9, ..way.clone() };
            engine.submit(request).unwrap()
        });
        finish(&mut engine);
        let [of_one, of_all, good] = ids.map(|id| answer(&mut engine, id));
        assert!(of_one.error().starts_with("the logit of token 5 is NaN"), "{way:?}");
        assert!(of_all.error().starts_with("the logit of token 0 is NaN"), "{way:?}");
        assert!(of_all.tokens.iter().all(|&token| token == 8), "{way:?} {:?}", of_all.tokens);
        assert_eq!((good.tokens.len(), good.end.unwrap().is_ok()), (9, true), "{way:?}");
    }
}

#[test]
fn a_model_that_returns_other_rows_is_refused() {
    struct Short(ScriptedModel);
    impl crate::model::ModelRunner for Short {
        fn limits(&self) -> &ModelLimits {
            self.0.limits()
        }
        fn device(&self) -> &crate::DeviceInfo {
            self.0.device()
        }
        fn begin(&mut self, batch: &crate::model::Batch<'_>) -> Result<(), Error> {
            self.0.begin(batch)
        }
        fn end(&mut self) -> Result<Vec<crate::model::SelectedRow>, Error> {
            self.0.end().map(|_| vec![])
        }
        fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
            self.0.logits(selected)
        }
    }
    let mut engine = Engine::new(Short(counting(plain())), EngineSettings::default()).unwrap();
    let run = engine.generate(request(&[1], 1), &Cancel::new(), &mut |_| ControlFlow::Continue(()));
    let error = run.unwrap_err();
    assert!(
        error.source().unwrap().to_string().starts_with("the device returned 0 rows, expected 1\nhint: ")
    );
}

#[test]
fn a_device_that_is_lost_stops_the_engine_at_once() {
    struct Lost(ScriptedModel);
    impl crate::model::ModelRunner for Lost {
        fn limits(&self) -> &ModelLimits {
            self.0.limits()
        }
        fn device(&self) -> &crate::DeviceInfo {
            self.0.device()
        }
        fn begin(&mut self, batch: &crate::model::Batch<'_>) -> Result<(), Error> {
            self.0.begin(batch)
        }
        fn end(&mut self) -> Result<Vec<crate::model::SelectedRow>, Error> {
            Err(EngineError::DeviceLost { device: "cuda:1, H200".into(), source: Arc::new(Error::NoLogits) }
                .into())
        }
        fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
            self.0.logits(selected)
        }
    }
    let mut engine = Engine::new(Lost(counting(plain())), EngineSettings::default()).unwrap();
    // The step takes the first four.
    let ids: Vec<_> = (0..5).map(|_| engine.submit(request(&[1], 2)).unwrap()).collect();
    while engine.step() {}
    let expected = "cuda:1, H200 is lost, expected a device that answers\nhint: ";
    let ended: Vec<_> = std::iter::from_fn(|| engine.next_event()).collect();
    assert_eq!(ended.iter().map(|event| event.id).collect::<Vec<_>>(), ids);
    for event in ended {
        let EventKind::Failed { error } = event.kind else { panic!("{event:?}") };
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    assert!(engine.submit(request(&[1], 1)).unwrap_err().to_string().starts_with(expected));
    assert!(engine.usage().is_stopped);
}

#[test]
fn cancelling_frees_pages_at_once() {
    let settings = EngineSettings { prefix_cache: false, ..EngineSettings::default() };
    let mut engine = engine_with(counting(limits(256, &[(None, 4)], &[ragged(8, 4, 8)])), settings);
    let running = engine.submit(request(&prompt(20, 1), 200)).unwrap();
    let waiting = engine.submit(request(&prompt(20, 1), 200)).unwrap();
    let last = engine.submit(request(&[1], 1)).unwrap();
    engine.step();
    assert_eq!((engine.usage().running, engine.usage().waiting), (1, 2));
    assert!(engine.cancel(running) && engine.cancel(waiting) && !engine.cancel(running));
    engine.check();
    assert_eq!(engine.usage().pools[0].free, 4);
    finish(&mut engine);
    assert_eq!(answer(&mut engine, running).reason(), StopReason::Cancelled);
    assert_eq!(answer(&mut engine, waiting).reason(), StopReason::Cancelled);
    assert_eq!(answer(&mut engine, last).tokens, [2]);
    assert!(matches!(
        Error::from(EngineError::Closed).to_string().split_once('\n'),
        Some(("the engine's thread has ended", _))
    ));
}
