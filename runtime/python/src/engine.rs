//! A loaded model.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc},
};

use mlxcel_artifacts::Bundle;
use mlxcel_runtime::{
    Chat, EncoderClient, EngineSettings, Error, Message, StartedModel, Weights, engine::EngineClient,
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use serde_json::{Map, Value};

use crate::{
    answer::{Answer, TokenLogprobs},
    batch, embedder, error,
    fork::ProcessBound,
    load::{self, Device, Where},
    options::Options,
    reading::Asked,
    stream::NativeStream,
    texts::Texts,
    wait::receive,
};

/// A model on a thread of its own.
struct Loaded {
    model: StartedModel,
    texts: Texts,
}

/// A loaded model.
#[pyclass(frozen, module = "mlxcel._native")]
pub(crate) struct NativeEngine {
    /// `None` after it was closed.
    loaded: ProcessBound<Mutex<Option<Arc<Loaded>>>>,
    bundle: Bundle,
}

/// Whether an answer continues its prompt or is a message of its own, and its default length in tokens.
#[derive(Clone, Copy)]
struct Kind {
    is_message: bool,
    tokens: usize,
}

/// Of a text that is continued. A message ends when it is complete.
const DEFAULT_TOKENS: usize = 128;

impl Loaded {
    /// Returns what continues texts.
    fn generator(&self, bundle: &Bundle) -> PyResult<EngineClient> {
        match &self.model {
            StartedModel::Generator(engine) => Ok(engine.client()),
            StartedModel::Encoder(_) => {
                let model = &bundle.manifest().model;
                let message =
                    format!("{model} makes embeddings of texts and does not continue them\nhint: use embed");
                Err(error::new("RequestError", &message))
            }
        }
    }

    /// Returns what makes embeddings.
    fn encoder(&self, bundle: &Bundle) -> PyResult<EncoderClient> {
        match &self.model {
            StartedModel::Encoder(encoder) => Ok(encoder.client()),
            StartedModel::Generator(_) => {
                let model = &bundle.manifest().model;
                let message =
                    format!("{model} continues texts and makes no embeddings of them\nhint: use generate");
                Err(error::new("RequestError", &message))
            }
        }
    }
}

impl NativeEngine {
    /// Returns the model.
    fn get(&self) -> PyResult<Arc<Loaded>> {
        let loaded = self.loaded.get()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
        loaded.ok_or_else(|| {
            error::new(
                "ClosedError",
                "the engine was closed, expected an open one\nhint: load the bundle again",
            )
        })
    }
}

#[pymethods]
impl NativeEngine {
    #[new]
    #[pyo3(signature = (place, device, *, context, cache_size, queue, weights))]
    fn new(
        py: Python<'_>,
        place: Where,
        device: Device,
        context: Option<usize>,
        cache_size: Option<&Bound<'_, PyAny>>,
        queue: usize,
        weights: Option<PathBuf>,
    ) -> PyResult<Self> {
        let options = load::load_options(&device, context, cache_size)?;
        let bundle = load::open(py, &place)?;
        let start = || -> Result<Loaded, Error> {
            let chosen = Weights::choose(&bundle, weights.as_deref())?;
            if let Some(chosen) = &chosen {
                chosen.check(&bundle.manifest().parameters)?;
            }
            let folder = weights.as_deref().filter(|path| path.is_dir());
            let texts = Texts::read(&bundle, folder)?;
            let settings = EngineSettings { waiting: queue, ..EngineSettings::default() };
            Ok(Loaded { model: StartedModel::start(&bundle, chosen, options, settings)?, texts })
        };
        let loaded = Mutex::new(Some(Arc::new(py.detach(start).map_err(error::of)?)));
        Ok(Self { loaded: ProcessBound::new(loaded), bundle })
    }

    /// Returns facts for Python's properties.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let loaded = self.get()?;
        let facts = PyDict::new(py);
        let (device, context, vocab, width) = match &loaded.model {
            StartedModel::Generator(engine) => {
                let client = engine.client();
                (client.device().clone(), client.context(), client.limits().vocab, None)
            }
            StartedModel::Encoder(encoder) => {
                let client = encoder.client();
                let limits = client.limits();
                (client.device().clone(), limits.context, limits.vocab, Some(limits.width))
            }
        };
        facts.set_item("model", &self.bundle.manifest().model)?;
        facts.set_item("digest", self.bundle.digest().to_string())?;
        facts.set_item("target", device.target)?;
        facts.set_item("device", device.name)?;
        facts.set_item("context", context)?;
        facts.set_item("vocab", vocab)?;
        facts.set_item("width", width)?;
        Ok(facts)
    }

    /// Ends the model's thread. Answers that are not complete end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let taken = self.loaded.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(taken));
        Ok(())
    }

    /// Encodes a text.
    fn encode(&self, py: Python<'_>, text: &str, special: bool) -> PyResult<Vec<u32>> {
        let loaded = self.get()?;
        let tokenizer = loaded.texts.tokenizer()?;
        py.detach(|| tokenizer.encode(text, special)).map_err(error::of)
    }

    /// Decodes tokens.
    fn decode(&self, tokens: Vec<u32>) -> PyResult<String> {
        self.get()?.texts.tokenizer()?.decode(&tokens).map_err(error::of)
    }

    /// Renders a chat by the model's template and encodes it. All are JSON.
    fn encode_chat(&self, messages: &str, tools: &str, variables: &str) -> PyResult<Vec<u32>> {
        let loaded = self.get()?;
        loaded.generator(&self.bundle)?;
        let tokenizer = loaded.texts.tokenizer()?;
        let Some(template) = loaded.texts.template() else {
            let message = format!(
                "{} has no chat template, expected one\nhint: use generate",
                self.bundle.manifest().model
            );
            return Err(error::new("RequestError", &message));
        };
        let chat = Chat {
            messages: parse::<Vec<Map<String, Value>>>("messages", messages)?
                .into_iter()
                .enumerate()
                .map(message)
                .collect::<Result<_, _>>()?,
            tools: parse("tools", tools)?,
            variables: parse("template_variables", variables)?,
        };
        tokenizer.encode_chat(template, &chat).map_err(error::of)
    }

    /// Begins an answer.
    fn stream(
        &self,
        py: Python<'_>,
        prompt: Vec<u32>,
        is_message: bool,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<NativeStream> {
        let loaded = self.get()?;
        let client = loaded.generator(&self.bundle)?;
        let options = Options::read(options)?;
        let kind = Kind::of(is_message);
        let start = || {
            let asked = asked(kind, &loaded.texts, &client, &options, prompt)?;
            NativeStream::start(&client, &loaded.texts, asked, &options.stop)
        };
        py.detach(start)
    }

    /// Answers all prompts.
    fn generate(
        &self,
        py: Python<'_>,
        prompts: Vec<Vec<u32>>,
        is_message: bool,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<Answer>> {
        let loaded = self.get()?;
        let client = loaded.generator(&self.bundle)?;
        let options = Options::read(options)?;
        let kind = Kind::of(is_message);
        let asked = || {
            let asked =
                prompts.into_iter().map(|prompt| asked(kind, &loaded.texts, &client, &options, prompt));
            asked.collect::<PyResult<Vec<_>>>()
        };
        let asked = py.detach(asked)?;
        batch::answer(py, &client, &loaded.texts, asked, &options.stop)
    }

    /// Computes the embeddings of texts: the bytes of a matrix of f32.
    fn embed<'py>(&self, py: Python<'py>, texts: Vec<Vec<u32>>) -> PyResult<Bound<'py, PyBytes>> {
        let loaded = self.get()?;
        let client = loaded.encoder(&self.bundle)?;
        Ok(PyBytes::new(py, &embedder::embed(py, &client, texts)?))
    }

    /// Returns the log-probability of each token from index `from` on.
    fn score(
        &self,
        py: Python<'_>,
        tokens: Vec<u32>,
        from: usize,
        top: usize,
    ) -> PyResult<Vec<TokenLogprobs>> {
        let loaded = self.get()?;
        let client = loaded.generator(&self.bundle)?;
        let (sender, answer) = mpsc::channel();
        let sink = Box::new(move |found| _ = sender.send(found));
        // The guard ends the work if Ctrl-C ends the wait.
        let _guard = client.try_score_to(tokens, from, top, sink).map_err(error::of)?;
        let found = receive(py, answer)?.map_err(error::of)?;
        Ok(found.into_iter().map(TokenLogprobs::from).collect())
    }
}

impl Kind {
    fn of(is_message: bool) -> Self {
        Self { is_message, tokens: if is_message { usize::MAX } else { DEFAULT_TOKENS } }
    }
}

/// Makes a request.
fn asked(
    kind: Kind,
    texts: &Texts,
    client: &EngineClient,
    options: &Options,
    prompt: Vec<u32>,
) -> PyResult<Asked> {
    let before = if kind.is_message { Vec::new() } else { prompt.clone() };
    let grammar = options.constraint.clone();
    let grammar = grammar.map(|constraint| texts.grammar(constraint, client.limits().vocab)).transpose()?;
    Ok(Asked { request: options.request(prompt, kind.tokens, texts.eos(), grammar)?, before })
}

/// Parses JSON of `mlxcel/engine.py`.
fn parse<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|problem| error::new("RequestError", &format!("{name}: {problem}")))
}

/// Reads a message of a chat.
fn message((index, mut fields): (usize, Map<String, Value>)) -> PyResult<Message> {
    let refuse = |name: &str, found: &Value, expected: &str| {
        let message = format!("message {}: found {name} {found:.80}, expected {expected}", index + 1);
        error::new("RequestError", &message)
    };
    let role = fields.remove("role").unwrap_or_default();
    let Value::String(role) = role else {
        return Err(refuse("the role", &role, "a text such as \"user\""));
    };
    let content = match fields.remove("content").unwrap_or_default() {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => return Err(refuse("the content", &other, "a text")),
    };
    Ok(Message { role, content, fields })
}
