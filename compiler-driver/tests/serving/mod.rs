//! mlxcel-serve with the demo model, as programs of others see it, and under load.

mod alone;
mod http;
mod lost_gpus;
mod restarts;
pub(crate) mod server;
mod soak;

use std::{fs, path::Path};

use server::{Server, demo, python};

use crate::real::{Built, built, models, program, request, toolchain};

/// Bundles that are served beside the demo model with a chat template: `plain`, which has none, and `vectors`, which embeds.
struct Others([(&'static str, Built); 2]);

impl Others {
    fn new() -> Self {
        let build = |checkpoint: &Path| built(&request(checkpoint, &["cpu"]));
        Self([("plain", build(&models().join("demo"))), ("vectors", build(&toolchain().join("minilm")))])
    }

    /// Serves all of them.
    fn serve(&self, arguments: &[&str]) -> Server {
        let named = self.0.iter().map(|(name, built)| format!("{name}={}", built.bundle.path().display()));
        let named: Vec<String> = named.collect();
        let named = named.iter().map(String::as_str);
        Server::start(&named.chain(arguments.iter().copied()).collect::<Vec<_>>())
    }
}

/// Receipts of answers beside others, which `mlxcel-run` makes again.
#[test]
fn receipts_are_replayed() {
    let demo = demo();
    let server = Server::of(demo.built.bundle.path(), "127.0.0.1:0", &[]);
    let bundle = demo.built.bundle.path().display().to_string();
    let program = program("mlxcel-run").display().to_string();
    python(&["receipts.py", "--url", &server.url, "--bundle", &bundle, "--program", &program]);
}

/// Chats, formats, calls, completions, embeddings and errors through the package `openai`, and answers of schemas, each of
/// which the package `jsonschema` validates.
#[test]
fn clients() {
    let others = Others::new();
    let server = others.serve(&[]);
    python(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--url", &server.url, "."]);
    python(&["schemas.py", "--url", &server.url, "--model", "demo", "--count", "60"]);
}

/// Requests that schemathesis makes of `/openapi.json`: none is a 500, and no answer contradicts the document.
///
/// Most of them set no length. The context is short, so that answers are: what they say does not matter here.
#[test]
fn contract() {
    let demo = demo();
    let server = Server::of(demo.built.bundle.path(), "127.0.0.1:0", &["--ctx-size", "128"]);
    python(&["contract.py", "--url", &server.url, "--examples", "8"]);
}

/// The manifests for Kubernetes: their schemas, and the options, probes and metrics that they name.
#[test]
fn manifests() {
    let demo = demo();
    let server = Server::of(demo.built.bundle.path(), "127.0.0.1:0", &[]);
    let program = program("mlxcel-serve").display().to_string();
    python(&["manifests.py", "--url", &server.url, "--program", &program]);
}

/// The pages in Chromium, on a server that needs no key and on one that does.
#[test]
fn pages() {
    let others = Others::new();
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("keys"), "a-key-of-the-test");
    fs::write(&file, key).unwrap();
    let (open, keyed) = (others.serve(&[]), others.serve(&["--api-keys", file.to_str().unwrap()]));
    python(&["pages.py", "--url", &open.url, "--keyed-url", &keyed.url, "--key", key]);
}
