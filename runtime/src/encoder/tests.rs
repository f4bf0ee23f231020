//! Tests of the encoder's thread over a scripted encoder.

use std::sync::{Arc, Mutex, mpsc};

use super::{
    contract::EncoderLimits,
    thread::{Embeddings, EncoderClient, EncoderThread},
};
use crate::{
    engine::{EngineSettings, RequestGuard},
    error::Error,
    scripted::ScriptedEncoder,
};

/// Calls of up to 8 tokens, so that a batch has up to 32.
fn limits() -> EncoderLimits {
    EncoderLimits { context: 8, vocab: 100, width: 2, rows: vec![4, 8] }
}

type Batches = Arc<Mutex<Vec<Vec<u32>>>>;

/// Starts an encoder whose vectors are a text's first token and its length, and that waits for the test before each
/// batch. It fails in texts that begin with 99. Returns the first tokens of the texts of each batch, too.
fn gated(waiting: usize) -> (EncoderThread, mpsc::Sender<()>, Batches) {
    let (gate, gates) = mpsc::channel();
    let batches = Batches::default();
    let seen = batches.clone();
    let load = move || {
        let encoder = ScriptedEncoder::new(limits(), move |texts| {
            seen.lock().unwrap().push(texts.iter().map(|text| text[0]).collect());
            let _ = gates.recv();
            match texts.iter().any(|text| text[0] == 99) {
                true => Err(Error::NoLogits),
                false => Ok(texts.iter().map(|text| vec![text[0] as f32, text.len() as f32]).collect()),
            }
        });
        Ok(Box::new(encoder) as _)
    };
    let settings = EngineSettings { waiting, ..EngineSettings::default() };
    (EncoderThread::start(load, settings).unwrap(), gate, batches)
}

type Answer = mpsc::Receiver<Result<Embeddings, Error>>;

fn embed(client: &EncoderClient, texts: &[Vec<u32>]) -> Result<(RequestGuard, Answer), Error> {
    let (sender, answer) = mpsc::channel();
    let guard = client.try_embed_to(texts.to_vec(), Box::new(move |found| _ = sender.send(found)))?;
    Ok((guard, answer))
}

/// Waits until the first batch is in the encoder.
fn until_first_batch(batches: &Batches) {
    while batches.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn requests_share_batches_in_turns() {
    let (engine, gate, batches) = gated(8);
    let client = engine.client();
    let (_first, _answer) = embed(&client, &[vec![1]]).unwrap();
    until_first_batch(&batches);
    // A large request does not keep a small one waiting.
    let large: Vec<_> = (10..20).map(|token| vec![token; 8]).collect();
    let (_large, all) = embed(&client, &large).unwrap();
    let (_small, one) = embed(&client, &[vec![2; 3]]).unwrap();
    assert_eq!((client.usage().waiting, client.usage().running), (2, 1));
    drop(gate);
    assert_eq!(one.recv().unwrap().unwrap().vectors, [[2.0, 3.0]]);
    let found = all.recv().unwrap().unwrap().vectors;
    assert_eq!(found, (10..20u8).map(|token| vec![f32::from(token), 8.0]).collect::<Vec<_>>());
    let expected = [vec![1], vec![10, 2, 11, 12, 13], vec![14, 15, 16, 17], vec![18, 19]];
    // The texts of a request come first in a batch: an order that no answer depends on.
    let sorted = |mut batch: Vec<u32>| {
        batch.sort_unstable();
        batch
    };
    let batches = batches.lock().unwrap().clone();
    assert_eq!(batches.into_iter().map(sorted).collect::<Vec<_>>(), expected.map(sorted));
    let usage = client.usage();
    assert_eq!((usage.waiting, usage.running, usage.work.steps, usage.work.prompt_tokens), (0, 0, 4, 84));
}

#[test]
fn a_full_queue_refuses_and_a_dropped_guard_ends_its_request() {
    let (engine, gate, batches) = gated(2);
    let client = engine.client();
    let (_guard, first) = embed(&client, &[vec![1]]).unwrap();
    until_first_batch(&batches);
    let (guard, second) = embed(&client, &[vec![2]]).unwrap();
    let (_kept, third) = embed(&client, &[vec![3]]).unwrap();
    let refused = embed(&client, &[vec![4]]).unwrap_err().to_string();
    assert!(refused.starts_with("the queue is full: 2 requests wait"), "{refused}");
    assert!(embed(&client, &[vec![1; 9]]).unwrap_err().to_string().starts_with("text 1: 9 tokens"));
    drop(guard);
    drop(gate);
    first.recv().unwrap().unwrap();
    second.recv().unwrap_err();
    assert_eq!(third.recv().unwrap().unwrap().vectors, [[3.0, 1.0]]);
    assert_eq!(*batches.lock().unwrap(), [[1], [3]]);
    assert_eq!(client.usage().waiting, 0);
}

#[test]
fn a_stopped_encoder_ends_requests_while_others_hold_it() {
    let (engine, gate, batches) = gated(8);
    let client = engine.client();
    // More than a batch, so that it has more to compute after this one.
    let (_first, rest) = embed(&client, &vec![vec![1; 8]; 10]).unwrap();
    until_first_batch(&batches);
    let (_second, waiting) = embed(&client, &[vec![2]]).unwrap();
    engine.stop();
    drop(gate);
    let error = rest.recv().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("the engine's thread has ended"), "{error}");
    waiting.recv().unwrap_err();
    assert_eq!(batches.lock().unwrap().len(), 1);
}

#[test]
fn a_batch_that_fails_ends_its_requests_and_three_end_the_encoder() {
    let (engine, gate, _) = gated(8);
    drop(gate);
    let client = engine.client();
    let ask = |token| {
        let (_guard, answer) = embed(&client, &[vec![token]]).unwrap();
        answer.recv().unwrap().map(|found| found.vectors).map_err(|error| error.to_string())
    };
    for _ in 0..2 {
        assert!(ask(99).unwrap_err().starts_with("a step of 1 request failed"));
    }
    assert_eq!(ask(1), Ok(vec![vec![1.0, 1.0]]));
    assert!(client.is_ready());
    for _ in 0..3 {
        ask(99).unwrap_err();
    }
    assert!(!client.is_ready());
    assert!(ask(1).unwrap_err().starts_with("3 steps failed one after another"));
    drop(engine);
    assert!(embed(&client, &[vec![1]]).unwrap_err().to_string().starts_with("the engine's thread has ended"));
}

#[test]
fn requests_without_texts_take_no_places() {
    let (engine, gate, _) = gated(2);
    drop(gate);
    let client = engine.client();
    for _ in 0..3 {
        let (_guard, answer) = embed(&client, &[]).unwrap();
        assert!(answer.recv().unwrap().unwrap().vectors.is_empty());
    }
    assert_eq!((client.usage().waiting, client.usage().work.steps), (0, 0));
    let (_guard, answer) = embed(&client, &[vec![1]]).unwrap();
    assert_eq!(answer.recv().unwrap().unwrap().vectors, [[1.0, 1.0]]);
    drop(engine);
    assert!(embed(&client, &[]).unwrap_err().to_string().starts_with("the engine's thread has ended"));
}
