//! A server of the demo model in a process of its own, and programs in Python that talk to it.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::real::{Built, built, models, program, request};

/// The longest time from a server's start to its first line with an address.
const START: Duration = Duration::from_secs(120);

/// A server that listens. Dropping it ends the process.
pub(super) struct Server {
    process: Child,
    pub(super) url: String,
    _demo: (Built, tempfile::TempDir),
}

/// Compiles the demo model with a chat template, because a checkpoint without one has no chats, and with a longer context, so
/// that answers in a format seldom are cut.
fn demo() -> (Built, tempfile::TempDir) {
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
    (built(&request(&checkpoint, &["cpu"])), folder)
}

impl Server {
    /// Serves the demo model under the name `demo`, with these arguments besides.
    pub(super) fn start(arguments: &[&str]) -> Self {
        let demo = demo();
        let mut process = Command::new(program("mlxcel-serve"))
            .arg(format!("demo={}", demo.0.bundle.path().display()))
            .args(["--listen", "127.0.0.1:0", "-t", "2"])
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (line, lines) = mpsc::channel();
        let log = BufReader::new(process.stderr.take().unwrap());
        // To the end: a full pipe would stop the server.
        thread::spawn(move || log.lines().map_while(Result::ok).for_each(|text| drop(line.send(text))));
        let mut seen = String::new();
        loop {
            let Ok(text) = lines.recv_timeout(START) else { panic!("the server did not start:\n{seen}") };
            if let Some((_, address)) = text.split_once("listening on ") {
                let url = address.trim_end_matches("/v1").to_owned();
                return Self { process, url, _demo: demo };
            }
            seen.push_str(&text);
            seen.push('\n');
        }
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
    let python = crate::real::toolchain().join("clients/bin/python3");
    assert!(
        python.exists(),
        "found no {}, expected Python with clients\nhint: cargo xtask setup",
        python.display()
    );
    let output = Command::new(python)
        .args(arguments)
        .current_dir(clients())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // A proxy is for other machines.
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{} failed:\n{}{}", arguments.join(" "), text[0], text[1]);
    // pytest passes if it finds no test, too.
    print!("{}", text[0]);
}
