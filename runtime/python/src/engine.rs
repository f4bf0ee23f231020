//! A loaded model.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc},
};

use mlxcel_runtime::{Chat, EngineSettings, Message, Prompt, StartedModel, TextModel};
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
    options,
    stream::NativeStream,
    wait::receive,
};

/// A loaded model.
#[pyclass(frozen, module = "mlxcel._native")]
pub(crate) struct NativeEngine {
    /// `None` after it was closed.
    loaded: ProcessBound<Mutex<Option<Arc<TextModel>>>>,
}

impl NativeEngine {
    /// Returns the model.
    fn get(&self) -> PyResult<Arc<TextModel>> {
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
        let settings = EngineSettings { waiting: queue, ..EngineSettings::default() };
        let load = || TextModel::load(bundle, weights.as_deref(), options, settings);
        let model = py.detach(load).map_err(error::of)?;
        Ok(Self { loaded: ProcessBound::new(Mutex::new(Some(Arc::new(model)))) })
    }

    /// Returns facts for Python's properties.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let loaded = self.get()?;
        let facts = PyDict::new(py);
        let (device, context, vocab, width) = match loaded.model() {
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
        facts.set_item("model", &loaded.bundle().manifest().model)?;
        facts.set_item("digest", loaded.bundle().digest().to_string())?;
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
        py.detach(|| {
            // Calls of other threads hold the model, too.
            if let Some(loaded) = &taken {
                loaded.model().stop();
            }
            drop(taken);
        });
        Ok(())
    }

    /// Encodes a text.
    fn encode(&self, py: Python<'_>, text: &str, special: bool) -> PyResult<Vec<u32>> {
        let loaded = self.get()?;
        py.detach(|| loaded.tokenizer()?.encode(text, special)).map_err(error::of)
    }

    /// Decodes tokens.
    fn decode(&self, tokens: Vec<u32>) -> PyResult<String> {
        self.get()?.tokenizer().and_then(|tokenizer| tokenizer.decode(&tokens)).map_err(error::of)
    }

    /// Renders a chat by the model's template and encodes it. All are JSON.
    fn encode_chat(
        &self,
        py: Python<'_>,
        messages: &str,
        tools: &str,
        variables: &str,
    ) -> PyResult<Vec<u32>> {
        let loaded = self.get()?;
        let chat = Chat {
            messages: parse::<Vec<Map<String, Value>>>("messages", messages)?
                .into_iter()
                .enumerate()
                .map(message)
                .collect::<Result<_, _>>()?,
            tools: parse("tools", tools)?,
            variables: parse("template_variables", variables)?,
        };
        py.detach(|| loaded.encode_chat(&chat)).map_err(error::of)
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
        let options = options::read(options)?;
        let start = || loaded.submit(loaded.request(Prompt { tokens: prompt, is_message }, &options)?);
        py.detach(start).map(NativeStream::new).map_err(error::of)
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
        let options = options::read(options)?;
        let request = |tokens| loaded.request(Prompt { tokens, is_message }, &options);
        let requests = || prompts.into_iter().map(request).collect::<Result<Vec<_>, _>>();
        let requests = py.detach(requests).map_err(error::of)?;
        batch::answer(py, &loaded, requests)
    }

    /// Computes the embeddings of texts: the bytes of a matrix of f32.
    fn embed<'py>(&self, py: Python<'py>, texts: Vec<Vec<u32>>) -> PyResult<Bound<'py, PyBytes>> {
        let loaded = self.get()?;
        let client = loaded.encoder().map_err(error::of)?;
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
        let client = loaded.generator().map_err(error::of)?;
        let (sender, answer) = mpsc::channel();
        let sink = Box::new(move |found| _ = sender.send(found));
        // The guard ends the work if Ctrl-C ends the wait.
        let _guard = client.try_score_to(tokens, from, top, sink).map_err(error::of)?;
        let found = receive(py, answer)?.map_err(error::of)?;
        Ok(found.into_iter().map(TokenLogprobs::from).collect())
    }
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
