//! A server of the demo model in a process of its own, and programs in Python that talk to it.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use super::http;
use crate::real::{self, Built, built, models, program, request};

/// The longest time from a server's start to its first line with an address.
const START: Duration = Duration::from_secs(120);

/// The longest time until a server ends, or has nothing to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that listens. Dropping it ends the process.
pub(super) struct Server {
    process: Child,
    pub(super) url: String,
    pub(super) address: SocketAddr,
    notes: Arc<Mutex<String>>,
    /// Its folder goes with the server.
    demo: Option<Demo>,
}

/// A bundle of the demo model.
pub(crate) struct Demo {
    pub(crate) built: Built,
    _folder: tempfile::TempDir,
}

/// Compiles the demo model with a chat template, because a checkpoint without one has no chats, and with a longer context, so
/// that answers in a format seldom are cut.
pub(crate) fn demo() -> Demo {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("demo");
    fs::create_dir(&checkpoint).unwrap();
    for entry in fs::read_dir(models().join("demo")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), checkpoint.join(entry.file_name())).unwrap();
    }
    fs::copy(clients().join("chat_template.jinja"), checkpoint.join("chat_template.jinja")).unwrap();
    let config = checkpoint.join("config.json");
    let text = fs::read_to_string(&config).unwrap();
    let longer = text.replace("\"max_position_embeddings\": 512", "\"max_position_embeddings\": 2048");
    assert_ne!(text, longer);
    fs::write(config, longer).unwrap();
    Demo { built: built(&request(&checkpoint, &["cpu"])), _folder: folder }
}

impl Server {
    /// Serves the demo model under the name `demo`, with these arguments besides.
    pub(super) fn start(arguments: &[&str]) -> Self {
        let demo = demo();
        let mut server = Self::of(demo.built.bundle.path(), "127.0.0.1:0", arguments);
        server.demo = Some(demo);
        server
    }

    /// Serves a bundle under the name `demo` at an address.
    pub(super) fn of(bundle: &Path, listen: &str, arguments: &[&str]) -> Self {
        Self::with(bundle, listen, arguments, &[])
    }

    /// Serves a bundle with these variables besides.
    pub(super) fn with(bundle: &Path, listen: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        // Many systems give a process few descriptors, and let it have more.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -S -n 256; exec \"$0\" \"$@\""]).arg(program("mlxcel-serve"));
        command
            .arg(format!("demo={}", bundle.display()))
            .args(["--listen", listen, "-t", "2"])
            .args(arguments)
            .envs(variables.iter().copied());
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (found, url) = mpsc::channel();
        let log = BufReader::new(process.stderr.take().unwrap());
        let notes = Arc::<Mutex<String>>::default();
        let kept = notes.clone();
        // To the end: a full pipe would stop the server.
        thread::spawn(move || {
            for text in log.lines().map_while(Result::ok) {
                if let Some((_, url)) = text.split_once("listening on ") {
                    _ = found.send(url.trim_end_matches("/v1").to_owned());
                }
                *kept.lock().unwrap() += &format!("{text}\n");
            }
        });
        let url = url.recv_timeout(START);
        let url = url.unwrap_or_else(|_| panic!("the server did not start:\n{}", notes.lock().unwrap()));
        let address = url.trim_start_matches("http://").parse().unwrap();
        Self { process, url, address, notes, demo: None }
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns what it wrote to stderr.
    pub(super) fn notes(&self) -> String {
        self.notes.lock().unwrap().clone()
    }

    /// Ends it as `kill -9` does, and waits for the end.
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends it by SIGTERM.
    pub(super) fn terminate(&mut self) -> ExitStatus {
        let kill = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status().unwrap();
        assert!(kill.success());
        until("it ends", || self.process.try_wait().unwrap())
    }

    /// Waits until no request waits, runs, or holds a page.
    pub(super) fn wait_until_idle(&self) {
        until("no request has a page", || {
            let (status, found) = http::get(self.address, "/status.json").unwrap();
            assert_eq!(status, 200);
            let model = &found["models"][0];
            let caches = model["cache"].as_array().unwrap();
            assert!(!caches.is_empty());
            let is_idle = model["running"] == 0 && model["queue"]["waiting"] == 0;
            (is_idle && caches.iter().all(|cache| cache["in_use"] == 0)).then_some(())
        });
    }
}

/// Waits until `check` finds something.
pub(super) fn until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The folder of programs in Python that talk to a server.
pub(super) fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/serve/tests/clients")
}

/// Runs Python with the packages of `xtask/clients.txt`, in the folder of the clients.
pub(super) fn python(arguments: &[&str]) {
    real::python("clients", &clients(), arguments, &[]);
}
