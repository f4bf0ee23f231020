//! A server over a scripted model, on a port of its own.

pub(crate) mod loader;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Digest;
use mlxcel_runtime::{
    ChatTemplate, Error, TextFiles, Tokenizer, engine::EngineClient, scripted::ScriptedModel,
};
use mlxcel_serve::{Limits, LoadError, Models, Settings, serve};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use loader::{Latest, ScriptedBundle, ScriptedLoader};

/// The time that answers have to end when the server stops.
const DRAIN: Duration = Duration::from_secs(1);

/// The time after which a test has failed. Nothing waits so long if all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The largest body of a request.
pub(crate) const MAX_BODY: usize = 64 << 10;

/// The id of `<s>`, after those of bytes.
const START: u32 = 256;

/// The time of a row of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    Fast,
    Slow,
}

/// A running server.
pub(crate) struct Server {
    address: String,
    latest: Latest,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(speed: Speed) -> Self {
        Self::with(speed, settings()).await
    }

    pub(crate) async fn with_keys(keys: &[&str]) -> Self {
        let api_keys = keys.iter().map(ToString::to_string).collect();
        Self::with(Speed::Fast, Settings { api_keys, ..settings() }).await
    }

    /// Serves a model with a template of Hermes' form, which answers everything with `answer` and then ends.
    pub(crate) async fn answering(answer: &'static str) -> Self {
        let template = "{{ '<s>' }}{{ tools | tojson }}{% for m in messages %}{{ m.tool_calls or m.content }}\
            {% endfor %}{# <tool_call> <think> #}~";
        Self::run(move || Ok(saying(answer)), text(template), settings()).await
    }

    /// Serves a model whose thread panics after a `!`.
    pub(crate) async fn panicking() -> Self {
        let load = || {
            Ok(ScriptedModel::of_tokens(512, START as usize + 1, |seen| {
                assert!(seen[seen.len() - 1] != u32::from(b'!'), "the test asks for it");
                (0..=START).map(|id| f32::from(u8::from(id == u32::from(b'!')))).collect()
            }))
        };
        Self::run(load, text("{{ messages[0].content }}"), settings()).await
    }

    pub(crate) async fn with(speed: Speed, settings: Settings) -> Self {
        let template = "{{ '<s>' }}{% for message in messages %}{{ message.content }}{% endfor %}:";
        Self::run(move || Ok(counting(speed)), text(template), settings).await
    }

    async fn run(
        model: impl FnOnce() -> Result<ScriptedModel, Error> + Send + 'static,
        text: TextFiles,
        settings: Settings,
    ) -> Self {
        let digest = Digest::of(b"scripted");
        let bundle = Mutex::new(Some(ScriptedBundle { digest, model: Box::new(model), text }));
        let open = move |_: &Path| bundle.lock().unwrap().take().ok_or_else(|| "it was opened before".into());
        Self::of(open, &[("scripted".into(), PathBuf::new())], settings).await
    }

    /// Serves what `open` makes of paths, under names.
    pub(crate) async fn of(
        open: impl Fn(&Path) -> Result<ScriptedBundle, LoadError> + Send + Sync + 'static,
        bundles: &[(String, PathBuf)],
        settings: Settings,
    ) -> Self {
        let (loader, latest) = ScriptedLoader::new(open);
        let models = Models::new(loader);
        for (name, bundle) in bundles {
            models.add(name, bundle).unwrap();
        }
        Self::serve(models, latest, settings).await
    }

    /// Serves models on a port of its own.
    pub(crate) async fn serve(models: Models, latest: Latest, settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { _ = stopped.await };
        let served = tokio::spawn(serve(listener, models, settings, stopped, DRAIN));
        Self { address, latest, stop: Some(stop), served }
    }

    /// Returns the engine of the model that was loaded last.
    pub(crate) fn engine(&self) -> EngineClient {
        self.latest.lock().unwrap().clone().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (StatusCode, String) {
        let response = Client::new().post(self.url(path)).json(body).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// Returns the answer to a request that succeeds.
    pub(crate) async fn ask(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.post(path, body).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        Client::new().get(self.url(path)).send().await.unwrap().json().await.unwrap()
    }

    /// Sends a completion with as many answers as may wait, of which only one at a time has room to run, and waits
    /// until all others wait. Its client goes when the set is dropped.
    pub(crate) async fn fill(&self, body: &Value) -> JoinSet<()> {
        let mut running = JoinSet::new();
        let sent = Client::new().post(self.url("/v1/completions")).json(body).send();
        running.spawn(async move { _ = sent.await });
        let engine = self.engine();
        until(async || {
            let usage = engine.usage();
            let is_full = usage.running == 1 && usage.waiting + 1 == engine.queue_limit();
            is_full.then_some(()).ok_or_else(|| format!("the queue is not full: {usage:?}"))
        })
        .await;
        running
    }

    /// Sends a completion, whose client goes as soon as it runs.
    pub(crate) async fn leave(&self, body: &Value) {
        let sent = Client::new().post(self.url("/v1/completions")).json(body).send();
        let client = tokio::spawn(async { sent.await.unwrap().text().await.unwrap() });
        let engine = self.engine();
        until(async || (engine.usage().running > 0).then_some(()).ok_or("nothing runs")).await;
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
    }

    /// Waits until no request runs, and checks that no page is held.
    pub(crate) async fn until_idle(&self) {
        let pool = until(async || {
            let usage = self.engine().usage();
            let is_idle = usage.running + usage.waiting == 0;
            is_idle.then(|| usage.pools[0]).ok_or_else(|| format!("requests still run: {usage:?}"))
        })
        .await;
        assert_eq!(pool.free + pool.cached, pool.pages);
    }

    /// Begins to stop.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for the end.
    pub(crate) async fn ended(self) {
        self.served.await.unwrap();
    }
}

/// Waits until `check` succeeds, and returns what it found. Its last error tells what never came.
pub(crate) async fn until<T, E: Display>(mut check: impl AsyncFnMut() -> Result<T, E>) -> T {
    let start = Instant::now();
    loop {
        match check().await {
            Ok(found) => return found,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns settings with a limit on bodies that tests exceed.
fn settings() -> Settings {
    Settings { limits: Limits { max_body: MAX_BODY, ..Limits::default() }, ..Settings::default() }
}

/// Makes a model that counts up from the last token.
pub(crate) fn counting(speed: Speed) -> ScriptedModel {
    ScriptedModel::of_tokens(512, START as usize + 1, move |seen| {
        if speed == Speed::Slow {
            thread::sleep(Duration::from_millis(5));
        }
        let next = (seen[seen.len() - 1] + 1) % START;
        (0..=START).map(|id| if id == next { 10.0 } else { 0.0 }).collect()
    })
}

/// Makes a model that says `answer` after a `~`, and then `z`.
fn saying(answer: &'static str) -> ScriptedModel {
    ScriptedModel::of_tokens(512, START as usize + 1, move |seen| {
        let said = seen.iter().rev().take_while(|&&token| token != u32::from(b'~')).count();
        let next = u32::from(answer.as_bytes().get(said).copied().unwrap_or(b'z'));
        (0..=START).map(|id| if id == next { 10.0 } else { 0.0 }).collect()
    })
}

/// Returns settings with an admin key.
pub(crate) fn admin(key: &str) -> Settings {
    Settings { admin_key: Some(key.into()), ..Settings::default() }
}

/// Makes a tokenizer with a token for each byte, and a template.
pub(crate) fn text(template: &str) -> TextFiles {
    let mut shifted = 0;
    let symbols = (0..=255u8).map(|byte| {
        let is_plain = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        shifted += u32::from(!is_plain);
        let symbol = if is_plain { char::from(byte) } else { char::from_u32(255 + shifted).unwrap() };
        (symbol.to_string(), json!(byte))
    });
    let vocab: serde_json::Map<_, _> = symbols.collect();
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [{ "id": START, "content": "<s>", "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false }],
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [START], "tokens": ["<s>"] } },
        },
        "decoder": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "model": { "type": "BPE", "vocab": vocab, "merges": [] },
    });
    TextFiles {
        tokenizer: Tokenizer::from_json(tokenizer.to_string().as_bytes()).unwrap(),
        template: ChatTemplate::new(Some(template.into()), "{}").unwrap(),
        eos: vec![u32::from(b'z')],
    }
}
