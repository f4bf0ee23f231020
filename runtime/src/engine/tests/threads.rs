//! The engine on a thread.

use std::{sync::mpsc, time::Duration};

use super::{super::EngineThread, *};

fn start(limits: ModelLimits, waiting: usize) -> EngineThread {
    let settings = EngineSettings { waiting, ..EngineSettings::default() };
    EngineThread::start(move || Ok(counting(limits)), settings).unwrap()
}

/// Starts a model that waits for the test before the logits of each row.
fn gated() -> (EngineThread, mpsc::Sender<()>) {
    let (engine, gate, _) = gated_and_told();
    (engine, gate)
}

/// The same, with a message whenever the model waits.
fn gated_and_told() -> (EngineThread, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (gate, gates) = mpsc::channel();
    let (waits, waiting) = mpsc::channel();
    let load = move || {
        Ok(ScriptedModel::new(plain(), move |_, _| {
            let _ = waits.send(());
            let _ = gates.recv();
            vec![0.0; VOCAB]
        }))
    };
    let settings = EngineSettings { waiting: 1, ..EngineSettings::default() };
    (EngineThread::start(load, settings).unwrap(), gate, waiting)
}

fn collect(handle: super::super::RequestHandle) -> Answer {
    let mut answer = Answer::default();
    handle.for_each(|event| answer.add(event));
    answer
}

#[test]
fn threads_share_an_engine() {
    let engine = start(plain(), 2);
    let answers: Vec<_> = (0..6u32)
        .map(|index| {
            let client = engine.client();
            std::thread::spawn(move || collect(client.submit(request(&[index], 5)).unwrap()))
        })
        .collect();
    for (index, answer) in (0..6u32).zip(answers) {
        assert_eq!(answer.join().unwrap().tokens, [1, 2, 3, 4, 5].map(|more| (index + more) % 12));
    }
    let usage = engine.client().usage();
    assert_eq!((usage.running, usage.waiting, usage.pools[0].free), (0, 0, 64));
}

#[test]
fn requests_are_checked_by_the_client() {
    let engine = start(limits(512, &[(None, 1)], &[ragged(8, 4, 8)]), 1);
    let client = engine.client();
    assert!(client.submit(request(&[], 1)).is_err());
    let error = client.try_submit(request(&[1; 65], 1)).unwrap_err().to_string();
    assert!(error.starts_with("the request needs 2 pages, expected at most 1"));
    assert_eq!(collect(client.try_submit(request(&[1], 1)).unwrap()).tokens, [2]);
}

#[test]
fn a_full_queue_refuses_and_a_dropped_handle_cancels() {
    let (engine, gate) = gated();
    let client = engine.client();
    let mut handles = vec![];
    // The thread is in a step of the first, so that no more is taken than fits the queues.
    let error = loop {
        match client.try_submit(request(&[1], 400)) {
            Ok(handle) => handles.push(handle),
            Err(error) => break error.to_string(),
        }
        assert!(handles.len() < 10);
    };
    assert!(error.starts_with("the queue is full"), "{error}");
    let first = handles.remove(0);
    drop(handles);
    // One row at a time: the dropped requests take no more than those of a step or two.
    for _ in 0..420 {
        gate.send(()).unwrap();
    }
    assert_eq!(collect(first).tokens.len(), 400);
}

#[test]
fn no_more_wait_than_there_are_places() {
    let (engine, gate) = gated();
    let client = engine.client();
    let first = client.submit(request(&[1], 1)).unwrap();
    // It gives its place back at the end of its first step.
    let second = {
        let client = client.clone();
        std::thread::spawn(move || client.submit(request(&[1], 1)).unwrap())
    };
    gate.send(()).unwrap();
    let second = second.join().unwrap();
    assert_eq!(collect(first).tokens.len(), 1);
    while client.usage().waiting == 0 && client.usage().running == 0 {
        std::thread::yield_now();
    }
    let waits = client.try_submit(request(&[1], 1));
    let refused = client.try_submit(request(&[1], 1)).unwrap_err().to_string();
    assert!(refused.starts_with("the queue is full: 1 "), "{refused}");
    drop(gate);
    collect(second);
    waits.into_iter().for_each(|handle| assert_eq!(collect(handle).tokens.len(), 1));
    assert_eq!(client.usage().waiting, 0);
}

#[test]
fn the_way_to_the_thread_counts_as_queued() {
    let (engine, gate) = gated();
    let client = engine.client();
    let first = client.submit(request(&[1], 2)).unwrap();
    let second = {
        let client = client.clone();
        std::thread::spawn(move || client.submit(request(&[1], 1)).unwrap())
    };
    // The second request gets its place when the first runs, and the thread then stays in its second step.
    gate.send(()).unwrap();
    let second = second.join().unwrap();
    drop(gate);
    collect(first);
    let (_, timings) = collect(second).end.unwrap().unwrap();
    assert!(timings.queued > Duration::ZERO);
}

/// A model that notes when its steps begin and end.
struct Noting {
    model: ScriptedModel,
    is_host: bool,
    notes: mpsc::Sender<&'static str>,
}

impl crate::model::ModelRunner for Noting {
    fn limits(&self) -> &ModelLimits {
        self.model.limits()
    }
    fn device(&self) -> &crate::DeviceInfo {
        self.model.device()
    }
    fn is_host(&self) -> bool {
        self.is_host
    }
    fn begin(&mut self, batch: &crate::model::Batch<'_>) -> Result<(), Error> {
        self.notes.send("begin").unwrap();
        self.model.begin(batch)
    }
    fn begin_next(&mut self, batch: &crate::model::Batch<'_>) -> Result<bool, Error> {
        let is_begun = self.model.begin_next(batch)?;
        if is_begun {
            self.notes.send("begin ahead").unwrap();
        }
        Ok(is_begun)
    }
    fn end(&mut self) -> Result<Vec<crate::model::SelectedRow>, Error> {
        let result = self.model.end();
        self.notes.send("end").unwrap();
        result
    }
    fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
        self.model.logits(selected)
    }
}

/// Returns what happened, in order: steps that begin and end, and events that are delivered.
fn order(is_host: bool, model: ScriptedModel) -> Vec<&'static str> {
    let (notes, noted) = mpsc::channel();
    let sink_notes = notes.clone();
    let load = move || Ok(Noting { model, is_host, notes });
    let engine = EngineThread::start(load, EngineSettings::default()).unwrap();
    let sink = Box::new(move |event| {
        let name = match event {
            EventKind::Token { .. } => "token",
            EventKind::Finished { .. } => "finished",
            EventKind::Failed { .. } => "failed",
        };
        sink_notes.send(name).is_ok()
    });
    let _guard = engine.client().try_submit_to(request(&[1], 3), sink).unwrap();
    let mut order = vec![];
    while order.last().is_none_or(|last| !["finished", "failed"].contains(last)) {
        order.push(noted.recv().unwrap());
    }
    order
}

#[test]
fn tokens_are_delivered_while_the_next_step_runs() {
    let next = ["begin", "token", "end"];
    let expected = [&["begin", "end"], &next[..], &next, &["token", "finished"]].concat();
    assert_eq!(order(false, counting(plain())), expected);
}

#[test]
fn a_step_is_begun_ahead_of_the_tokens_before_it() {
    let expected = [
        &["begin", "begin ahead", "end"][..],
        &["begin ahead", "token", "end"],
        &["token", "end"],
        &["token", "finished"],
    ];
    assert_eq!(order(false, counting(plain()).ahead()), expected.concat());
}

#[test]
fn a_step_that_fails_holds_no_token_back() {
    assert_eq!(order(false, counting(plain()).failing([1])), ["begin", "end", "begin", "token", "failed"]);
}

#[test]
fn tokens_come_before_the_next_step_takes_all_processors() {
    let step = ["begin", "end", "token"];
    assert_eq!(order(true, counting(plain())), [&step[..], &step, &step, &["finished"]].concat());
}

#[test]
fn dropping_the_engine_cancels() {
    let (engine, gate) = gated();
    let client = engine.client();
    let handle = client.submit(request(&[1], 100)).unwrap();
    handle.cancel();
    drop(gate);
    assert_eq!(collect(handle).reason(), StopReason::Cancelled);
    assert!(client.is_ready());
    drop(engine);
    assert!(!client.is_ready());
    assert!(
        client.submit(request(&[1], 1)).unwrap_err().to_string().starts_with("the engine's thread has ended")
    );
}

#[test]
fn every_request_has_a_last_event() {
    let (engine, gate) = gated();
    let client = engine.client();
    let mut first = client.submit(request(&[1], 100)).unwrap();
    // After the first token, the thread has begun the request. It waits for the gate, and this one for the thread.
    gate.send(()).unwrap();
    assert!(matches!(first.next(), Some(EventKind::Token { .. })));
    let (sender, events) = mpsc::channel();
    let sink = Box::new(move |event| sender.send(event).is_ok());
    let guard = client.try_submit_to(request(&[1], 100), sink);
    let stop = engine.stop.clone();
    let ends = std::thread::spawn(move || drop(engine));
    while !stop.is_cancelled() {
        std::thread::yield_now();
    }
    drop(gate);
    ends.join().unwrap();
    assert_eq!(collect(first).reason(), StopReason::Cancelled);
    if guard.is_ok() {
        let last = events.iter().last().unwrap();
        assert!(!matches!(last, EventKind::Token { .. }), "{last:?}");
    }
}

#[test]
fn a_stopped_engine_ends_requests_while_others_hold_it() {
    let (engine, gate, waiting) = gated_and_told();
    let client = engine.client();
    let mut first = client.submit(request(&[1], 100)).unwrap();
    gate.send(()).unwrap();
    assert!(matches!(first.next(), Some(EventKind::Token { .. })));
    // The thread is in its second step, and takes no request before it has ended: the second one has the only place, for
    // which the third waits.
    (0..2).for_each(|_| waiting.recv().unwrap());
    let second = client.submit(request(&[1], 100)).unwrap();
    let third = std::thread::spawn(move || client.submit(request(&[1], 100)).map(drop));
    engine.stop();
    drop(gate);
    assert_eq!(collect(first).reason(), StopReason::Cancelled);
    let closed = "the engine's thread has ended";
    assert!(collect(second).error().starts_with(closed));
    assert!(third.join().unwrap().unwrap_err().to_string().starts_with(closed));
    assert!(!engine.client().is_ready());
}

#[test]
fn an_answer_without_a_limit_has_what_the_cache_has_room_for() {
    let engine = start(limits(512, &[(None, 2)], &[ragged(8, 4, 8)]), 1);
    let client = engine.client();
    assert_eq!([20, 127, 128, 500].map(|tokens| client.room(tokens)), [108, 1, 1, 1]);
    for tokens in [20, 128] {
        let room = client.room(tokens);
        let answer = collect(client.submit(request(&prompt(tokens, 1), room)).unwrap());
        assert_eq!((answer.tokens.len(), answer.reason()), (room, StopReason::Length));
    }
    // Where the cache holds the context, the end of the context ends the answer.
    let client = start(plain(), 1).client();
    assert_eq!(client.room(500), usize::MAX);
}

#[test]
fn a_model_that_does_not_load_is_an_error() {
    let load = || -> Result<ScriptedModel, Error> { Err(Error::NoLogits) };
    let error = EngineThread::start(load, EngineSettings::default()).unwrap_err();
    assert!(matches!(error, Error::NoLogits));
}
