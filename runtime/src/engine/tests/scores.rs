//! Logits of known texts.

use std::sync::mpsc;

use super::{
    super::{EngineClient, EngineThread},
    *,
};
use crate::{error::EngineError, sampling::TokenLogprobs};

#[test]
fn a_text_has_the_same_logits_in_pieces() {
    for prefix_cache in [true, false] {
        let settings = EngineSettings { prefix_cache, ..EngineSettings::default() };
        let mut engine = engine_with(model(plain()), settings);
        let text = prompt(200, 3);
        let whole = engine.score(&text, 0).unwrap();
        assert_eq!(whole.len(), 200);
        let pieces: Vec<Vec<f32>> = (0..200)
            .step_by(64)
            .flat_map(|from| engine.score(&text[..(from + 64).min(200)], from).unwrap())
            .collect();
        assert_eq!(pieces, whole);
        engine.check();
        // The token after the text is what a request gets.
        let next = generate(&mut engine, request(&text, 1)).unwrap().tokens[0] as usize;
        let last = &whole[199];
        assert!(last.iter().all(|logit| *logit <= last[next]));
    }
}

#[test]
fn scores_of_what_is_not_there_are_refused() {
    let mut engine = engine(counting(limits(256, &[(None, 2)], &[ragged(8, 4, 8)])));
    assert!(matches!(engine.score(&[], 0), Err(Error::NoTokens)));
    assert!(matches!(engine.score(&[1, 2], 2), Err(Error::NoTokens)));
    assert!(matches!(engine.score(&[12], 0), Err(Error::TokenOutOfRange { .. })));
    let never = engine.score(&[1; 129], 0).unwrap_err();
    assert!(matches!(never, Error::Engine(EngineError::NeverFits { needed: 3, pages: 2, .. })));
    let id = engine.submit(request(&prompt(20, 1), 100)).unwrap();
    engine.step();
    let error = engine.score(&[1; 70], 0).unwrap_err().to_string();
    assert!(error.starts_with("1 requests run and have the pages that the text needs"), "{error}");
    engine.cancel(id);
    assert_eq!(engine.score(&[1; 70], 69).unwrap().len(), 1);
    engine.check();
}

/// Scores a text on an engine's thread.
fn ask(
    client: &EngineClient,
    text: &[u32],
    from: usize,
) -> mpsc::Receiver<Result<Vec<TokenLogprobs>, Error>> {
    let (sender, found) = mpsc::channel();
    let sink = Box::new(move |result| _ = sender.send(result));
    // The guard would cancel it.
    std::mem::forget(client.try_score_to(text.to_vec(), from, 2, sink).unwrap());
    found
}

#[test]
fn a_thread_scores_texts_between_the_steps_of_requests() {
    let text = prompt(100, 3);
    let mut alone = engine(model(plain()));
    let expected = alone.token_logprobs(&text, 40, 2).unwrap();
    assert_eq!(expected.len(), 60);
    let rows = alone.score(&text, 0).unwrap();
    for (index, found) in expected.iter().enumerate() {
        let row = &rows[39 + index];
        let total: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
        let logprob = f64::from(row[text[40 + index] as usize]) - total.ln();
        assert!((f64::from(found.token) - logprob).abs() < 1e-4, "{found:?} for {logprob}");
        assert_eq!(found.top.len(), 2);
    }
    let thread = EngineThread::start(|| Ok(model(plain())), EngineSettings::default()).unwrap();
    let client = thread.client();
    let answer = client.submit(request(&prompt(70, 1), 30)).unwrap();
    let scores: Vec<_> = (0..3).map(|_| ask(&client, &text, 40)).collect();
    for found in scores {
        assert_eq!(found.recv().unwrap().unwrap(), expected);
    }
    assert_eq!(answer.filter(|event| matches!(event, EventKind::Token { .. })).count(), 30);
    let refused = client.try_score_to(vec![1], 1, 0, Box::new(|_| ())).unwrap_err().to_string();
    assert!(
        refused.starts_with("1 tokens from number 2 on, expected a token after another one"),
        "{refused}"
    );
}

#[test]
fn a_text_waits_for_the_pages_of_requests() {
    let load = || Ok(counting(limits(256, &[(None, 3)], &[ragged(8, 4, 8)])));
    let thread = EngineThread::start(load, EngineSettings::default()).unwrap();
    let client = thread.client();
    let answer = client.submit(request(&prompt(20, 1), 100)).unwrap();
    let found = ask(&client, &prompt(120, 2), 1);
    // Three more would starve it, if they went first.
    let later: Vec<_> = (0..3).map(|_| client.submit(request(&prompt(20, 1), 100)).unwrap()).collect();
    assert_eq!(found.recv().unwrap().unwrap().len(), 119);
    for answer in later.into_iter().chain([answer]) {
        assert_eq!(answer.filter(|event| matches!(event, EventKind::Token { .. })).count(), 100);
    }
}

#[test]
fn a_cancelled_text_gives_its_pages_back() {
    let thread = EngineThread::start(|| Ok(model(plain())), EngineSettings::default()).unwrap();
    let client = thread.client();
    let (sender, found) = mpsc::channel();
    let sink = Box::new(move |result| _ = sender.send(result));
    drop(client.try_score_to(prompt(100, 1), 1, 0, sink).unwrap());
    // It may have ended before.
    let cancelled = found.recv().unwrap();
    assert!(matches!(cancelled, Ok(_) | Err(Error::Engine(EngineError::Cancelled))), "{cancelled:?}");
    assert_eq!(ask(&client, &prompt(100, 1), 99).recv().unwrap().unwrap().len(), 1);
    assert_eq!(client.usage().waiting, 0);
}
