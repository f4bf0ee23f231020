//! An encoder on a thread of its own, for many clients at a time.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mlxcel_artifacts::Cancel;

use super::contract::{Encoder, EncoderLimits, check_texts};
use crate::{
    device::DeviceInfo,
    engine::{EngineSettings, RequestGuard, Usage},
    error::{EngineError, Error, SharedCause},
    places::{Life, Places},
};

/// How many of the largest calls a batch fills: enough that few rows of its last call are free, and few enough that a
/// request beside a large one does not wait long.
const CALLS_OF_A_BATCH: usize = 4;

/// An [`Encoder`] on a thread. Dropping it ends all requests and waits for the thread.
#[derive(Debug)]
pub struct EncoderThread {
    client: EncoderClient,
    stop: Cancel,
    thread: Option<JoinHandle<()>>,
}

/// Submits texts to an [`EncoderThread`]. Clones share one queue.
#[derive(Debug, Clone)]
pub struct EncoderClient {
    queue: Sender<Message>,
    places: Arc<Places>,
    /// The most requests that wait.
    limit: usize,
    encoder: Arc<(EncoderLimits, DeviceInfo)>,
    usage: Arc<Mutex<Usage>>,
}

/// The embeddings of a request's texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// The embedding of each text.
    pub vectors: Vec<Vec<f32>>,
    /// The time that the request waited for its turn.
    pub queued: Duration,
}

/// Takes the answer to a request, on the encoder's thread. One without texts is answered where it is submitted.
pub type EmbeddingSink = Box<dyn FnOnce(Result<Embeddings, Error>) + Send>;

enum Message {
    Submit(Box<Job>),
    /// Wakes the thread to look whether it has to stop.
    Wake,
}

/// A request on its way.
struct Job {
    texts: Vec<Vec<u32>>,
    vectors: Vec<Vec<f32>>,
    at: Instant,
    /// The time that it waited, once its first texts are in a batch.
    queued: Option<Duration>,
    sink: EmbeddingSink,
    cancel: Cancel,
}

impl EncoderThread {
    /// Starts a thread that makes an encoder. Returns when the encoder is loaded.
    ///
    /// Texts of all requests share batches, in turns. Of the settings, [`EngineSettings::waiting`] and
    /// [`EngineSettings::failures`] mean what they do for an engine.
    ///
    /// # Errors
    /// `load` fails.
    pub fn start<F>(load: F, settings: EngineSettings) -> Result<Self, Error>
    where
        F: FnOnce() -> Result<Box<dyn Encoder>, Error> + Send + 'static,
    {
        // Bounded by the places.
        let (queue, messages) = mpsc::channel();
        let (loaded, is_loaded) = mpsc::channel();
        let (places, stop, usage) = (Arc::<Places>::default(), Cancel::new(), Arc::<Mutex<Usage>>::default());
        let life = Life(places.clone());
        let (stopping, shown) = (stop.clone(), usage.clone());
        let failures = settings.failures.max(1);
        let thread = thread::Builder::new().name("encoder".to_owned()).spawn(move || match load() {
            Ok(encoder) => {
                if loaded.send(Ok((encoder.limits().clone(), encoder.device().clone()))).is_ok() {
                    let (jobs, stop, usage) = (vec![], stopping, shown);
                    let most_rows = CALLS_OF_A_BATCH * most_rows(encoder.limits());
                    let end = End { most: failures, failed: 0, cause: None };
                    Worker { life, encoder, jobs, messages, most_rows, stop, usage, end }.run();
                }
            }
            Err(error) => _ = loaded.send(Err(error)),
        });
        let thread = Some(thread.map_err(|_| EngineError::Closed)?);
        let encoder = Arc::new(is_loaded.recv().map_err(|_| EngineError::Closed)??);
        let client = EncoderClient { queue, places, limit: settings.waiting.max(1), encoder, usage };
        Ok(Self { client, stop, thread })
    }

    /// Returns a client, for another thread.
    #[must_use]
    pub fn client(&self) -> EncoderClient {
        self.client.clone()
    }

    /// Ends all requests, and takes no more.
    ///
    /// Does not wait: they end when the current batch has ended.
    pub fn stop(&self) {
        self.stop.cancel();
        let _ = self.client.queue.send(Message::Wake);
    }
}

impl Drop for EncoderThread {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl EncoderClient {
    /// Submits texts whose embeddings `sink` takes, if the queue has room. Dropping the guard ends the request.
    ///
    /// # Errors
    /// [`check_texts`] refuses a text, the queue is full, or the thread has ended.
    pub fn try_embed_to(&self, texts: Vec<Vec<u32>>, sink: EmbeddingSink) -> Result<RequestGuard, Error> {
        check_texts(self.limits(), &texts.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let (guard, cancel) = RequestGuard::new();
        if texts.is_empty() {
            if self.places.has_ended() {
                return Err(EngineError::Closed.into());
            }
            // No batch has a text of it, so that nothing would give its place back.
            sink(Ok(Embeddings { vectors: Vec::new(), queued: Duration::ZERO }));
            return Ok(guard);
        }
        self.places.try_take(self.limit)?;
        let job = Job { texts, vectors: vec![], at: Instant::now(), queued: None, sink, cancel };
        self.queue.send(Message::Submit(Box::new(job))).map_err(|_| EngineError::Closed)?;
        Ok(guard)
    }

    /// Returns the limits of texts.
    #[must_use]
    pub fn limits(&self) -> &EncoderLimits {
        &self.encoder.0
    }

    /// Returns what the encoder runs on.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        &self.encoder.1
    }

    /// Returns the most requests that can wait.
    #[must_use]
    pub fn queue_limit(&self) -> usize {
        self.limit
    }

    /// Returns whether requests can succeed: the thread runs, and its device has not failed for good.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.places.has_ended() && !self.usage.lock().unwrap_or_else(PoisonError::into_inner).is_stopped
    }

    /// Returns what the encoder had before it delivered its last answers, and how many requests wait now. Steps are
    /// batches, and rows are their tokens.
    #[must_use]
    pub fn usage(&self) -> Usage {
        // Read first, because a request that begins is shown as running before its place is free.
        let waiting = self.places.taken();
        let usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Usage { waiting, ..usage }
    }
}

/// The thread's own part.
struct Worker {
    /// Dropped first, so that who sees a request end with the thread sees that it has ended.
    life: Life,
    encoder: Box<dyn Encoder>,
    /// In the order of submission.
    jobs: Vec<Job>,
    messages: Receiver<Message>,
    /// The tokens that fill a batch.
    most_rows: usize,
    stop: Cancel,
    usage: Arc<Mutex<Usage>>,
    end: End,
}

/// When the encoder stops because of its failures.
struct End {
    /// Failures one after another that are too many.
    most: usize,
    failed: usize,
    /// The last failure, once there were too many.
    cause: Option<SharedCause>,
}

impl Worker {
    fn run(&mut self) {
        while !self.stop.is_cancelled() {
            if self.jobs.is_empty() {
                match self.messages.recv() {
                    Ok(message) => self.accept(message),
                    Err(_) => return,
                }
            }
            while let Ok(message) = self.messages.try_recv() {
                self.accept(message);
            }
            self.forget_cancelled();
            self.run_batch();
        }
        for job in self.jobs.drain(..) {
            (job.sink)(Err(EngineError::Closed.into()));
        }
    }

    fn accept(&mut self, message: Message) {
        let Message::Submit(job) = message else { return };
        if let Some(cause) = &self.end.cause {
            let error = EngineError::of_stop(self.end.failed, cause);
            self.life.0.free(1);
            (job.sink)(Err(error.into()));
        } else {
            self.jobs.push(*job);
        }
    }

    fn forget_cancelled(&mut self) {
        let waiting = |jobs: &[Job]| jobs.iter().filter(|job| job.queued.is_none()).count();
        let before = waiting(&self.jobs);
        self.jobs.retain(|job| !job.cancel.is_cancelled());
        self.life.0.free(before - waiting(&self.jobs));
    }

    /// Computes a batch, and answers requests that it completes.
    fn run_batch(&mut self) {
        let taken = fill(&self.jobs, self.most_rows);
        self.begin(&taken);
        let parts = self.jobs.iter().zip(&taken).flat_map(|(job, &count)| job.rest().iter().take(count));
        let texts: Vec<&[u32]> = parts.map(Vec::as_slice).collect();
        if self.jobs.is_empty() {
            return;
        }
        let tokens = texts.iter().map(|text| text.len()).sum::<usize>() as u64;
        let start = Instant::now();
        let result = self.encoder.embed(&texts);
        let took = start.elapsed();
        let answers = self.answers(&taken, result);
        // First, so that who sees an answer sees the work that it took.
        self.show(|usage| {
            usage.work.steps += 1;
            usage.work.rows += tokens;
            usage.work.prompt_tokens += tokens;
            usage.work.time += took;
        });
        answers.into_iter().for_each(|(sink, answer)| sink(answer));
    }

    /// Gives back the places of requests whose first texts are in a batch.
    fn begin(&mut self, taken: &[usize]) {
        let mut begun = 0;
        for (job, _) in self.jobs.iter_mut().zip(taken).filter(|(_, count)| **count > 0) {
            if job.queued.is_none() {
                job.queued = Some(job.at.elapsed());
                begun += 1;
            }
        }
        // In this order, so that a request that begins is always seen: waiting, running, or for a moment as both.
        self.show(|_| ());
        self.life.0.free(begun);
    }

    /// Divides a batch among its requests. Returns the answers of those that end.
    fn answers(
        &mut self,
        taken: &[usize],
        result: Result<Vec<Vec<f32>>, Error>,
    ) -> Vec<(EmbeddingSink, Result<Embeddings, Error>)> {
        let requests = taken.iter().filter(|count| **count > 0).count();
        let mut result: Result<_, SharedCause> = match result {
            Ok(vectors) => {
                self.end.failed = 0;
                Ok(vectors.into_iter())
            }
            Err(error) => {
                let cause: SharedCause = Arc::new(error);
                self.end.failed += 1;
                let is_last = self.end.failed >= self.end.most || EngineError::lost(&cause).is_some();
                self.end.cause = is_last.then(|| cause.clone());
                Err(cause)
            }
        };
        let (mut answers, mut rest) = (Vec::new(), Vec::new());
        for (mut job, &count) in std::mem::take(&mut self.jobs).into_iter().zip(taken) {
            match &mut result {
                Ok(vectors) => {
                    job.vectors.extend(vectors.by_ref().take(count));
                    if job.vectors.len() < job.texts.len() {
                        rest.push(job);
                        continue;
                    }
                    let queued = job.queued.unwrap_or_default();
                    answers.push((job.sink, Ok(Embeddings { vectors: job.vectors, queued })));
                }
                Err(cause) if count > 0 => {
                    let error = EngineError::of_step(requests, cause);
                    answers.push((job.sink, Err(error.into())));
                }
                Err(_) => rest.push(job),
            }
        }
        self.jobs = rest;
        answers
    }

    fn show(&self, change: impl FnOnce(&mut Usage)) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut usage);
        usage.running = self.jobs.iter().filter(|job| job.queued.is_some()).count();
        usage.is_stopped = self.end.cause.is_some();
    }
}

impl Job {
    /// Returns the texts that have no embedding yet.
    fn rest(&self) -> &[Vec<u32>] {
        &self.texts[self.vectors.len()..]
    }
}

/// Returns how many texts each request has in the next batch: one after the other in turns, until there are `most_rows`
/// tokens.
fn fill(jobs: &[Job], most_rows: usize) -> Vec<usize> {
    let mut taken = vec![0; jobs.len()];
    let mut rows = 0;
    let mut is_full = false;
    while !is_full {
        is_full = true;
        for (job, taken) in jobs.iter().zip(&mut taken) {
            if let Some(text) = job.rest().get(*taken).filter(|_| rows < most_rows) {
                rows += text.len();
                *taken += 1;
                is_full = false;
            }
        }
    }
    taken
}

/// Returns the rows of the largest call.
fn most_rows(limits: &EncoderLimits) -> usize {
    limits.rows.last().copied().unwrap_or(limits.context).max(1)
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Message")
    }
}
