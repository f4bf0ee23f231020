//! Bundles that are exchanged while they are served.
use std::{
    path::Path,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Digest;
use mlxcel_runtime::scripted::ScriptedModel;
use mlxcel_serve::{LoadError, end_runtime};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::scripted::{Server, admin, loader::ScriptedBundle, text, until};

/// Bundles that answer with the last letter of their file. One that begins with a `!` waits while it is loaded, and one
/// that begins with a `?` in the middle of its answers, until `is_open`. Their engines end at a `!`.
struct Bundles {
    folder: tempfile::TempDir,
    /// A handle of each model that was loaded. It is gone with the model.
    models: Mutex<Vec<Weak<()>>>,
    is_open: AtomicBool,
    is_waiting: AtomicBool,
}

impl Bundles {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            folder: tempfile::tempdir().unwrap(),
            models: Mutex::default(),
            is_open: false.into(),
            is_waiting: false.into(),
        })
    }

    fn wait(&self) {
        self.is_waiting.store(true, Ordering::SeqCst);
        while !self.is_open.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn write(&self, name: &str, letter: &str) {
        std::fs::write(self.folder.path().join(name), letter).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn open(self: &Arc<Self>, path: &Path) -> Result<ScriptedBundle, LoadError> {
        let letter = std::fs::read_to_string(path)?;
        let digest = Digest::of(letter.as_bytes());
        let this = self.clone();
        let model = Box::new(move || {
            if letter.starts_with('!') {
                this.wait();
            }
            let alive = Arc::new(());
            this.models.lock().unwrap().push(Arc::downgrade(&alive));
            let next = u32::from(letter.as_bytes()[letter.len() - 1]);
            let waits = letter.starts_with('?');
            Ok(ScriptedModel::of_tokens(4096, 257, move |seen| {
                let _held = &alive;
                assert!(seen.last() != Some(&u32::from(b'!')), "the test asks for it");
                if waits && seen.len() > 50 {
                    this.wait();
                }
                (0..257).map(|id| if id == next { 10.0 } else { 0.0 }).collect()
            }))
        });
        Ok(ScriptedBundle { digest, model, text: text("{{ messages[0].content }}") })
    }

    fn alive(&self) -> Vec<bool> {
        self.models.lock().unwrap().iter().map(|model| model.strong_count() > 0).collect()
    }

    /// Waits until these models are there, and no others.
    async fn until_alive(&self, expected: &[bool]) {
        until(async || {
            let found = self.alive();
            if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
        })
        .await;
    }

    async fn serve(self: &Arc<Self>, names: &[&str]) -> Server {
        let this = self.clone();
        let bundles: Vec<_> = names.iter().map(|name| ((*name).to_owned(), self.path(name).into())).collect();
        Server::of(move |path: &Path| this.open(path), &bundles, admin("secret")).await
    }
}

async fn reload(server: &Server, body: &Value) -> (u16, Value) {
    let request = Client::new().post(server.url("/admin/reload")).bearer_auth("secret").json(body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn completion(model: &str, tokens: usize) -> Value {
    json!({ "model": model, "prompt": "x", "temperature": 0, "max_tokens": tokens })
}

async fn answer(server: &Server, model: &str) -> String {
    let whole = server.ask("/v1/completions", &completion(model, 3)).await;
    whole["choices"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn several_bundles_have_names_and_are_reloaded_alone() {
    let bundles = Bundles::new();
    bundles.write("one", "a");
    bundles.write("two", "b");
    let server = bundles.serve(&["one", "two"]).await;
    let models = server.get("/v1/models").await;
    let ids: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!(ids, ["one", "two"]);
    assert_eq!((answer(&server, "one").await, answer(&server, "two").await), ("aaa".into(), "bbb".into()));
    let (status, text) = server.post("/v1/completions", &json!({ "prompt": "x" })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("found no model, expected one of one, two"), "{text}");

    let [a, b, c] = ["a", "b", "c"].map(|letter| Digest::of(letter.as_bytes()).to_string());
    let (status, same) = reload(&server, &json!({ "model": "one" })).await;
    let expected = json!({ "model": "one", "changed": false, "digest": a, "previous_digest": a });
    assert_eq!((status, same), (200, expected));
    assert_eq!(bundles.alive(), [true, true]);

    bundles.write("one", "c");
    let (status, changed) = reload(&server, &json!({ "model": "one", "digest": c })).await;
    let expected = json!({ "model": "one", "changed": true, "digest": c, "previous_digest": a });
    assert_eq!((status, changed), (200, expected));
    assert_eq!((answer(&server, "one").await, answer(&server, "two").await), ("ccc".into(), "bbb".into()));
    assert_eq!(server.get("/v1/models/one").await["digest"], c);
    bundles.until_alive(&[false, true, true]).await;

    // Another place, which is that of later reloads too.
    bundles.write("three", "d");
    let (status, _) = reload(&server, &json!({ "model": "two", "bundle": bundles.path("three") })).await;
    assert_eq!((status, answer(&server, "two").await), (200, "ddd".into()));
    bundles.write("three", "b");
    let (_, changed) = reload(&server, &json!({ "model": "two" })).await;
    assert_eq!(changed["digest"], b);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_on_the_model_that_they_began_on() {
    let bundles = Bundles::new();
    bundles.write("one", "?a");
    let server = bundles.serve(&["one"]).await;
    let old = server.engine();
    let mut body = completion("one", 400);
    body["stream"] = true.into();
    let mut streams = Vec::new();
    for _ in 0..4 {
        // Its head comes as soon as the request waits for the engine.
        let response = Client::new().post(server.url("/v1/completions")).json(&body).send().await.unwrap();
        streams.push(response);
    }
    bundles.write("one", "b");
    let (status, changed) = reload(&server, &json!({ "model": "one" })).await;
    assert_eq!((status, &changed["changed"]), (200, &true.into()));
    assert_eq!(bundles.alive(), [true, true], "answers run on the old one");
    assert_eq!(answer(&server, "one").await, "bbb");
    bundles.is_open.store(true, Ordering::SeqCst);
    for stream in streams {
        let text = stream.text().await.unwrap();
        let (mut said, mut is_done) = (String::new(), false);
        for event in text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")) {
            is_done = event == "[DONE]";
            let chunk: Value = serde_json::from_str(event).unwrap_or_default();
            said += chunk["choices"][0]["text"].as_str().unwrap_or_default();
        }
        assert!(is_done, "{text}");
        assert_eq!(said, "a".repeat(400));
    }
    bundles.until_alive(&[false, true]).await;
    let usage = old.usage();
    assert_eq!((usage.running, usage.pools[0].free + usage.pools[0].cached), (0, usage.pools[0].pages));
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_changes_nothing() {
    let bundles = Bundles::new();
    bundles.write("one", "a");
    let server = bundles.serve(&["one"]).await;
    let refused = async |body: Value| {
        let (status, found) = reload(&server, &body).await;
        let error = &found["error"];
        let message = error["message"].as_str().unwrap().replace(&bundles.path(""), "");
        (status, error["param"].clone(), error["code"].clone(), message)
    };
    let refusal = |status: u16, param: &str, code: Option<&str>, message: &str| {
        (status, json!(param), json!(code), message.to_owned())
    };
    assert_eq!(
        refused(json!({ "model": "two" })).await,
        refusal(404, "model", Some("model_not_found"), "the model `two` is not served, expected one of one")
    );
    assert_eq!(
        refused(json!({ "bundle": bundles.path("nowhere") })).await,
        refusal(
            422,
            "bundle",
            Some("load_failed"),
            "cannot load nowhere: No such file or directory (os error 2)"
        )
    );
    let [a, b] = ["a", "b"].map(|letter| Digest::of(letter.as_bytes()).to_string());
    assert_eq!(
        refused(json!({ "digest": b })).await,
        refusal(
            422,
            "digest",
            Some("digest_mismatch"),
            &format!("the bundle has the digest {a}, expected {b}")
        )
    );
    for (body, param, message) in [
        (json!({ "digest": "b" }), "digest", "digest: `b` is not a digest, expected `blake3:` and 64"),
        (json!({ "bundle": 1 }), "bundle", "bundle: invalid type: integer `1`, expected path string"),
        (json!({ "force": true }), "force", "force is not supported"),
    ] {
        let (status, found, _, text) = refused(body).await;
        assert_eq!((status, found), (400, json!(param)));
        assert!(text.starts_with(message), "{text}");
    }
    // One that is slow to load: meanwhile the old one answers, and no other reload begins.
    bundles.write("one", "!z");
    let first = json!({ "model": "one" });
    let (loaded, ()) = tokio::join!(reload(&server, &first), async {
        while !bundles.is_waiting.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let busy = "the model `one` is being reloaded already, expected one reload at a time";
        assert_eq!(refused(json!({})).await, refusal(409, "model", Some("reload_in_progress"), busy));
        assert_eq!(answer(&server, "one").await, "aaa");
        bundles.is_open.store(true, Ordering::SeqCst);
    });
    assert_eq!(loaded.0, 200);
    assert_eq!(server.get("/v1/models/one").await["digest"], Digest::of(b"!z").to_string());

    let plain = Client::new().post(server.url("/admin/reload")).json(&json!({}));
    assert_eq!(plain.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_failed_is_loaded_again() {
    let bundles = Bundles::new();
    bundles.write("one", "a");
    let server = bundles.serve(&["one"]).await;
    let (status, _) = server.post("/v1/completions", &json!({ "prompt": "!", "max_tokens": 2 })).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let (status, again) = reload(&server, &json!({})).await;
    assert_eq!((status, &again["changed"], &again["digest"]), (200, &json!(true), &again["previous_digest"]));
    assert_eq!(answer(&server, "one").await, "aaa");
    bundles.until_alive(&[false, true]).await;
}

#[test]
fn a_reload_does_not_keep_a_server_that_has_ended() {
    let bundles = Bundles::new();
    bundles.write("one", "a");
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let mut server = bundles.serve(&["one"]).await;
        bundles.write("one", "!z");
        let request = Client::new().post(server.url("/admin/reload")).bearer_auth("secret").json(&json!({}));
        tokio::spawn(async move { _ = request.send().await });
        while !bundles.is_waiting.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.stop();
        server.ended().await;
    });
    let start = Instant::now();
    end_runtime(runtime, Duration::from_millis(100));
    let took = start.elapsed();
    // Its thread ends with the test.
    bundles.is_open.store(true, Ordering::SeqCst);
    assert!(took < Duration::from_secs(30), "{took:?}");
}
