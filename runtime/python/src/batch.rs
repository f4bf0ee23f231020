//! Many prompts, answered as the engine has room for them.

use std::{
    collections::VecDeque,
    sync::mpsc::{self, Receiver, Sender},
};

use mlxcel_runtime::{
    AnswerReader, EngineError, Error, Request, TextModel, TextRequest,
    engine::{EngineClient, EventKind, RequestGuard},
};
use pyo3::prelude::*;

use crate::{
    answer::Answer,
    error,
    wait::{SIGNALS, wait},
};

/// Requests that wait, and those that run.
struct Batch {
    client: EngineClient,
    waiting: VecDeque<(usize, Request)>,
    readers: Vec<AnswerReader>,
    /// Dropping one cancels its request.
    guards: Vec<Option<RequestGuard>>,
    running: usize,
    sender: Sender<(usize, EventKind)>,
    events: Receiver<(usize, EventKind)>,
}

/// Answers all requests, and returns the answers in their order. The first that fails ends all.
pub(crate) fn answer(py: Python<'_>, model: &TextModel, requests: Vec<TextRequest>) -> PyResult<Vec<Answer>> {
    let mut batch = py.detach(|| Batch::new(model, requests)).map_err(error::of)?;
    wait(py, || batch.advance().transpose())?.map_err(error::of)?;
    let answers = batch.readers.into_iter().filter_map(AnswerReader::into_answer);
    Ok(answers.map(Answer::from).collect())
}

impl Batch {
    fn new(model: &TextModel, requests: Vec<TextRequest>) -> Result<Self, Error> {
        let client = model.generator()?;
        // Before any runs.
        requests.iter().try_for_each(|one| client.check(&one.request))?;
        let readers = requests.iter().map(|one| model.answer(one)).collect::<Result<Vec<_>, _>>()?;
        let guards = readers.iter().map(|_| None).collect();
        let waiting = requests.into_iter().map(|one| one.request).enumerate().collect();
        let (sender, events) = mpsc::channel();
        Ok(Self { client, waiting, readers, guards, running: 0, sender, events })
    }

    /// Submits what has room and reads events. `None` after [`SIGNALS`] without an end.
    fn advance(&mut self) -> Result<Option<()>, Error> {
        self.submit()?;
        if self.running == 0 && self.waiting.is_empty() {
            return Ok(Some(()));
        }
        // Without one that runs, the requests of others have all places, and there is no event of theirs.
        let patience = if self.running == 0 { SIGNALS / 10 } else { SIGNALS };
        let mut next = self.events.recv_timeout(patience).ok();
        while let Some((index, event)) = next {
            let is_end = !matches!(event, EventKind::Token { .. });
            let (_, is_stopped) = self.readers[index].push(event)?;
            if is_end {
                self.running -= 1;
            }
            if is_end || is_stopped {
                self.guards[index] = None;
                self.submit()?;
            }
            next = self.events.try_recv().ok();
        }
        Ok((self.running == 0 && self.waiting.is_empty()).then_some(()))
    }

    /// Submits requests while the queue has room.
    fn submit(&mut self) -> Result<(), Error> {
        while let Some((index, request)) = self.waiting.pop_front() {
            let sender = self.sender.clone();
            let sink = Box::new(move |event| sender.send((index, event)).is_ok());
            match self.client.try_submit_to(request.clone(), sink) {
                Ok(guard) => {
                    self.guards[index] = Some(guard);
                    self.running += 1;
                }
                // Others have all places: they are tried again.
                Err(Error::Engine(EngineError::QueueFull { .. })) => {
                    self.waiting.push_front((index, request));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
