//! Many prompts, answered as the engine has room for them.

use std::{
    collections::VecDeque,
    sync::mpsc::{self, Receiver, Sender},
};

use mlxcel_runtime::{
    EngineError, Error, Request,
    engine::{EngineClient, EventKind, RequestGuard},
};
use pyo3::prelude::*;

use crate::{
    answer::Answer,
    error,
    reading::{Asked, Reading},
    texts::Texts,
    wait::{SIGNALS, wait},
};

/// Requests that wait, and those that run.
struct Batch<'b> {
    client: &'b EngineClient,
    waiting: VecDeque<(usize, Request)>,
    readings: Vec<Reading>,
    /// Dropping one cancels its request.
    guards: Vec<Option<RequestGuard>>,
    running: usize,
    sender: Sender<(usize, EventKind)>,
    events: Receiver<(usize, EventKind)>,
}

/// Answers all requests, and returns the answers in their order. The first that fails ends all.
pub(crate) fn answer(
    py: Python<'_>,
    client: &EngineClient,
    texts: &Texts,
    asked: Vec<Asked>,
    stops: &[String],
) -> PyResult<Vec<Answer>> {
    let mut batch = py.detach(|| Batch::new(client, texts, asked, stops))?;
    wait(py, || batch.advance().transpose())?.map_err(error::of)?;
    Ok(batch.readings.into_iter().filter_map(|reading| reading.end).collect())
}

impl<'b> Batch<'b> {
    fn new(client: &'b EngineClient, texts: &Texts, asked: Vec<Asked>, stops: &[String]) -> PyResult<Self> {
        // Before any runs.
        asked.iter().try_for_each(|asked| client.check(&asked.request)).map_err(error::of)?;
        let readings = asked.iter().map(|asked| Reading::new(texts, asked, stops));
        let readings = readings.collect::<PyResult<Vec<_>>>()?;
        let guards = readings.iter().map(|_| None).collect();
        let waiting = asked.into_iter().map(|asked| asked.request).enumerate().collect();
        let (sender, events) = mpsc::channel();
        Ok(Self { client, waiting, readings, guards, running: 0, sender, events })
    }

    /// Submits what has room and reads events. `None` after [`SIGNALS`] without an end.
    fn advance(&mut self) -> Result<Option<()>, Error> {
        self.submit()?;
        let mut next = match self.running {
            0 => return Ok(Some(())),
            _ => self.events.recv_timeout(SIGNALS).ok(),
        };
        while let Some((index, event)) = next {
            let is_end = !matches!(event, EventKind::Token { .. });
            let (_, is_stopped) = self.readings[index].add(event)?;
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
