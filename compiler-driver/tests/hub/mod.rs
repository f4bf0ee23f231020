//! Models of the hub, from a server on the loopback interface.

mod cache;
mod failures;
mod programs;
pub(crate) mod server;
mod transfers;

use std::{fs, path::PathBuf};

use mlxcel_compiler_driver::{Cancel, Event, HubSettings, ModelSource, Snapshot};
use tempfile::TempDir;

use crate::sandbox::CONFIG;
use server::{Files, HubServer, State};

/// The commit of `main`.
const COMMIT: &str = "00112233445566778899aabbccddeeff00112233";

/// Bytes of the weights.
const SIZE: usize = 1_000_000;

/// A hub with the repository `org/model`, and an empty cache.
struct Hub {
    server: HubServer,
    home: TempDir,
    settings: HubSettings,
}

/// The files of the repository.
fn files() -> Files {
    let weights: Vec<u8> = (0..SIZE).map(|i| (i * i / 7) as u8).collect();
    let file = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
    Files::from([
        file(".gitattributes", b"*.safetensors filter=lfs"),
        file("README.md", b"# Model"),
        file("config.json", CONFIG.as_bytes()),
        file("model.safetensors", &weights),
        file("onnx/model.onnx", b"onnx"),
        file("pytorch_model.bin", b"pickle"),
        file("tokenizer.json", b"{}"),
    ])
}

impl Hub {
    fn new() -> Self {
        Self::of(files())
    }

    fn of(files: Files) -> Self {
        let server = HubServer::start(State {
            repo: "org/model".into(),
            revisions: [("main".into(), COMMIT.into())].into(),
            commits: [(COMMIT.into(), files)].into(),
            ..State::default()
        });
        let home = tempfile::tempdir().unwrap();
        let settings = HubSettings {
            cache: Some(home.path().join("hub")),
            endpoint: server.endpoint.clone(),
            token: None,
            offline: false,
        };
        Self { server, home, settings }
    }

    /// Changes what the server has or does.
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.server.state.lock().unwrap());
    }

    /// Returns a path in the repository's folder in the cache.
    fn at(&self, path: &str) -> PathBuf {
        self.home.path().join("hub/models--org--model").join(path)
    }

    /// Finds or downloads a model with its weights. Returns events or the error's text, with short URLs and paths.
    fn get(&self, name: &str) -> Result<(Snapshot, Vec<Event>), String> {
        self.find(name, None, true, &Cancel::new())
    }

    fn find(
        &self,
        name: &str,
        revision: Option<&str>,
        with_weights: bool,
        cancel: &Cancel,
    ) -> Result<(Snapshot, Vec<Event>), String> {
        let mut events = Vec::new();
        let mut progress = |event| events.push(event);
        let settings = &self.settings;
        match ModelSource::find_or_download(name, revision, with_weights, settings, cancel, &mut progress) {
            Ok(ModelSource::Hub(snapshot)) => Ok((*snapshot, events)),
            Ok(other) => panic!("found {other:?}"),
            Err(error) => {
                let text = mlxcel_artifacts::report(&error).replace(&settings.endpoint, "http://hub");
                Err(text.replace(&self.home.path().display().to_string(), "…"))
            }
        }
    }

    fn refusal(&self, name: &str) -> String {
        match self.get(name) {
            Ok((snapshot, _)) => panic!("found {}", snapshot.folder().display()),
            Err(text) => text,
        }
    }

    /// Returns the paths of files that were asked for, without those of the API.
    fn asked(&self) -> Vec<String> {
        let start = "/org/model/resolve/";
        let log = self.server.log();
        let paths = log.iter().filter_map(|asked| asked.path.strip_prefix(start)?.split_once('/'));
        paths.map(|(_, name)| name.to_owned()).collect()
    }

    /// Returns the sorted names in a folder of the repository's, which may not exist.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(folder)).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Returns the texts of warnings.
fn warnings(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Warning(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
