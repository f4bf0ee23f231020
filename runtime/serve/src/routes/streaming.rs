//! Answers as server-sent events.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    http::StatusCode,
    response::{
        IntoResponse,
        sse::{Event, KeepAlive, Sse},
    },
};
use mlxcel_runtime::receipt::Receipt;
use serde_json::Value;
use tokio::{
    sync::mpsc::{self, Sender},
    task::JoinSet,
};
use tokio_stream::wrappers::ReceiverStream;

use crate::{
    answer::{Part, Running},
    api::{
        answers::{AnswerPart, Envelope, Sent, Usage},
        error::ApiError,
    },
    generator::Generator,
    observe::record::Record,
    state::Shared,
};

/// Events that wait for the client. The engine does not wait for it.
const WAITING: usize = 32;

/// The time after which a comment is sent if there is nothing else. A client that is gone shows only when something is sent.
const PING: Duration = Duration::from_secs(5);

/// The end of every stream that is complete.
const DONE: &str = "[DONE]";

type Events = Sender<Result<Event, Infallible>>;

/// A stream of one answer, under construction.
struct Writer {
    state: Shared,
    generator: Arc<Generator>,
    envelope: Envelope,
    include_usage: bool,
    index: usize,
    events: Events,
}

/// Streams answers. When the client goes, the stream is dropped, and with it the requests.
pub(super) fn stream(
    state: Shared,
    generator: Arc<Generator>,
    record: Record,
    envelope: Envelope,
    include_usage: bool,
    running: Vec<Running>,
) -> impl IntoResponse {
    record.stream();
    let (events, received) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        for (index, running) in running.into_iter().enumerate() {
            let (generator, envelope, events) = (generator.clone(), envelope.clone(), events.clone());
            let state = state.clone();
            tasks.spawn(Writer { state, generator, envelope, include_usage, index, events }.write(running));
        }
        let end = tokio::select! {
            end = join(&mut tasks) => end,
            // Dropping the tasks cancels the requests.
            () = events.closed() => return,
            error = state.cut(record.start()) => Err(error),
        };
        match end {
            Ok((usage, receipts)) => {
                if include_usage {
                    send(&events, &envelope.usage(usage)).await;
                }
                if !receipts.is_empty() {
                    send(&events, &envelope.receipts(&receipts, include_usage)).await;
                }
                _ = events.send(Ok(Event::default().data(DONE))).await;
                record.end(StatusCode::OK, None);
            }
            Err(error) => {
                // The error is the last event: nothing of the other answers comes after it.
                tasks.shutdown().await;
                send(&events, &error.to_json()).await;
                record.end(error.status(), Some(error.name()));
            }
        }
    });
    Sse::new(ReceiverStream::new(received)).keep_alive(KeepAlive::new().interval(PING).text("ping"))
}

/// The tokens of an answer, and its index and receipt if one was asked for.
type Ended = (Usage, Option<(usize, Receipt)>);

/// Waits for all answers and returns their tokens and receipts.
async fn join(tasks: &mut JoinSet<Result<Ended, ApiError>>) -> Result<(Usage, Vec<Receipt>), ApiError> {
    let (mut usage, mut receipts) = (Usage::default(), Vec::new());
    while let Some(ended) = tasks.join_next().await {
        let (of_one, receipt) = ended.unwrap_or_else(|_| Err(ApiError::stopping()))?;
        receipts.extend(receipt);
        usage.prompt += of_one.prompt;
        usage.cached += of_one.cached;
        usage.generated += of_one.generated;
    }
    receipts.sort_by_key(|(index, _)| *index);
    Ok((usage, receipts.into_iter().map(|(_, receipt)| receipt).collect()))
}

/// Sends an event. A client that is gone ends the stream elsewhere.
async fn send(events: &Events, data: &Value) {
    _ = events.send(Ok(Event::default().data(data.to_string()))).await;
}

impl Writer {
    /// Writes an answer to its end.
    async fn write(self, running: Running) -> Result<Ended, ApiError> {
        let Running { mut answer, prompt } = running;
        let (mut usage, mut generated, mut sent) = (Usage::default(), 0, Sent::default());
        let mut signed = None;
        if let Some(start) = self.envelope.start(self.index, self.include_usage) {
            send(&self.events, &start).await;
        }
        while let Some(part) = answer.next().await? {
            let mut made = AnswerPart::default();
            match part {
                Part::Token { deltas, token } => {
                    generated += 1;
                    // Text that is held back comes with a later token.
                    if deltas.is_empty() && token.logprobs.is_none() {
                        continue;
                    }
                    made.deltas = deltas;
                    made.tokens.push(token);
                }
                Part::End { deltas, finish, timings, receipt } => {
                    usage.add(prompt, generated, &timings);
                    made.deltas = deltas;
                    made.finish = Some(finish);
                    let receipt = receipt.map(|receipt| self.state.sign(*receipt)).transpose()?;
                    signed = receipt.map(|receipt| (self.index, receipt));
                }
            }
            self.part(&made, &mut sent).await;
        }
        Ok((usage, signed))
    }

    async fn part(&self, made: &AnswerPart, sent: &mut Sent) {
        let Self { state: _, generator, envelope, include_usage, index, events } = self;
        let part = envelope.part(*index, generator.tokenizer(), made, sent, *include_usage);
        send(events, &part).await;
    }
}
