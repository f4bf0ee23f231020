//! Embeddings over a scripted encoder.

use std::{
    path::Path,
    sync::{Arc, Mutex, mpsc},
};

use mlxcel_artifacts::{Digest, Quant};
use mlxcel_runtime::{
    EncoderClient, EncoderLimits, EncoderThread, EngineSettings, Error, scripted::ScriptedEncoder,
};
use mlxcel_serve::{Facts, LoadError, Loader, Models, OpenedBundle, ServedModel, Settings, Task};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::{
    chat,
    scripted::{Server, Speed, loader::Latest, text, until},
};

const PATH: &str = "/v1/embeddings";

/// What the encoder waits for before each batch, if a test holds the other end.
type Gate = Arc<Mutex<mpsc::Receiver<()>>>;

/// Loads an encoder that waits for a gate. A text's vector is its first token, its last one, and their number.
#[derive(Debug)]
struct EncoderLoader {
    gate: Gate,
    client: Arc<Mutex<Option<EncoderClient>>>,
}

impl Loader for EncoderLoader {
    fn open(&self, _: &Path) -> Result<Box<dyn OpenedBundle>, LoadError> {
        Ok(Box::new(Self { gate: self.gate.clone(), client: self.client.clone() }))
    }
}

impl OpenedBundle for EncoderLoader {
    fn digest(&self) -> Digest {
        Digest::of(b"encoder")
    }

    fn load(self: Box<Self>, name: &str) -> Result<Arc<ServedModel>, LoadError> {
        let limits = EncoderLimits { context: 8, vocab: 257, width: 3, rows: vec![8] };
        let gate = self.gate.clone();
        let load = move || -> Result<_, Error> {
            let encoder = ScriptedEncoder::new(limits, move |texts| {
                _ = gate.lock().unwrap().recv();
                let vector = |text: &&[u32]| {
                    vec![text[0] as f32, text[text.len() - 1] as f32 / 10.0, text.len() as f32]
                };
                Ok(texts.iter().map(vector).collect())
            });
            Ok(Box::new(encoder) as _)
        };
        let settings = EngineSettings { waiting: 2, ..EngineSettings::default() };
        let encoder = EncoderThread::start(load, settings)?;
        *self.client.lock().unwrap() = Some(encoder.client());
        let facts = Facts {
            digest: Digest::of(b"encoder"),
            context: 8,
            target: "script".into(),
            device: "scripted".into(),
            quantization: Quant::None,
            signature: None,
            task: Task::Embedding,
        };
        Ok(ServedModel::embedder(name.into(), facts, text("").tokenizer, encoder))
    }
}

/// Serves the encoder. It waits for the gate while the sender lives.
async fn start() -> (Server, mpsc::Sender<()>, EncoderClient) {
    let (open, gate) = mpsc::channel();
    let client = Arc::default();
    let models = Models::new(Box::new(EncoderLoader {
        gate: Arc::new(Mutex::new(gate)),
        client: Arc::clone(&client),
    }));
    models.add("encoder", Path::new("")).unwrap();
    let client = client.lock().unwrap().clone().unwrap();
    (Server::serve(models, Latest::default(), Settings::default()).await, open, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_and_tokens_are_embedded() {
    let (server, open, _) = start().await;
    drop(open);
    let whole = server.ask(PATH, &json!({ "input": ["ab", "c"], "model": "encoder", "dimensions": 3 })).await;
    let entry = |index: usize, embedding: Value| json!({ "object": "embedding", "index": index, "embedding": embedding });
    let expected = json!({
        "object": "list", "model": "encoder",
        "data": [entry(0, json!([256.0, 9.8, 3.0])), entry(1, json!([256.0, 9.9, 2.0]))],
        "usage": { "prompt_tokens": 5, "total_tokens": 5 },
    });
    assert_eq!(whole, expected);
    let vectors = async |input: Value| server.ask(PATH, &json!({ "input": input })).await["data"].clone();
    assert_eq!(vectors(json!("ab")).await[0]["embedding"], json!([256.0, 9.8, 3.0]));
    assert_eq!(vectors(json!([7, 8])).await[0]["embedding"], json!([7.0, 0.8, 2.0]));
    assert_eq!(vectors(json!([[7], [8, 9]])).await[1]["embedding"], json!([8.0, 0.9, 2.0]));
    let encoded = server.ask(PATH, &json!({ "input": [8, 20], "encoding_format": "base64" })).await;
    assert_eq!(encoded["data"][0]["embedding"], "AAAAQQAAAEAAAABA");
    assert_eq!(server.get("/v1/models").await["data"][0]["task"], "embedding");
    let status = server.get("/status.json").await;
    assert_eq!(status["models"][0]["totals"]["prompt_tokens"], 5 + 3 + 2 + 3 + 2);
    assert_eq!(
        (&status["models"][0]["cache"], &status["models"][0]["queue"]["limit"]),
        (&json!([]), &json!(2))
    );
    assert_eq!(status["slowest"].as_array().unwrap().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_embedded_is_refused() {
    let (server, open, _) = start().await;
    drop(open);
    let generator = Server::start(Speed::Fast).await;
    let refused = async |server: &Server, path: &str, body: Value| {
        let (status, text) = server.post(path, &body).await;
        let error: Value = serde_json::from_str(&text).unwrap();
        let field = |name: &str| error["error"][name].as_str().unwrap_or("null").to_owned();
        format!("{} {} {}: {}", status.as_u16(), field("code"), field("param"), field("message"))
    };
    insta::assert_snapshot!([
        refused(&server, PATH, json!({ "input": ["a", "a".repeat(8)] })).await,
        refused(&server, PATH, json!({ "input": [[1], [300]] })).await,
        refused(&server, PATH, json!({ "input": [[1], []] })).await,
        refused(&server, PATH, json!({ "input": "a", "dimensions": 2 })).await,
        refused(&server, PATH, json!({ "input": vec!["a".repeat(200); 2000] })).await,
        refused(&server, "/v1/chat/completions", chat("a")).await,
        refused(&server, "/v1/completions", json!({ "prompt": "a" })).await,
        refused(&server, "/apply-template", chat("a")).await,
        refused(&generator, PATH, json!({ "input": "a" })).await,
    ].join("\n"), @r#"
    400 context_length_exceeded input: text 2: 9 tokens, expected at most 8, the size of the context
    400 null input: text 2: token 1 of the prompt has the id 300, expected 0 to 256
    400 null input: one of the texts has no tokens, expected at least one
    400 null dimensions: dimensions is 2, but only 3 is supported
    400 null input: the texts have more than 300000 tokens, expected at most that
    400 null model: the model `encoder` makes embeddings, expected one that generates
    400 null model: the model `encoder` makes embeddings, expected one that generates
    400 null model: the model `encoder` makes embeddings, expected one that generates
    400 null model: the model `scripted` generates texts, expected one that makes embeddings
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_leaves_the_queue_and_a_full_one_refuses() {
    let (server, open, client) = start().await;
    let body = json!({ "input": "a" });
    let send = || tokio::spawn(Client::new().post(server.url(PATH)).json(&body).send());
    let until_has = async |running: usize, waiting: usize| {
        until(async || {
            let usage = client.usage();
            let is_so = (usage.running, usage.waiting) == (running, waiting);
            is_so.then_some(()).ok_or_else(|| format!("expected {running} and {waiting}: {usage:?}"))
        })
        .await;
    };
    let first = send();
    until_has(1, 0).await;
    let (second, third) = (send(), send());
    until_has(1, 2).await;
    let (status, text) = server.post(PATH, &body).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{text}");
    second.abort();
    drop(open);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(third.await.unwrap().unwrap().status(), StatusCode::OK);
    until_has(0, 0).await;
}
