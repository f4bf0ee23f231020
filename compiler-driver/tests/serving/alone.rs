//! Requests, and what mlxcel-run answers when it has nothing else to do.

use std::{fs, io, net::SocketAddr, path::Path, process::Command};

use serde_json::{Value, json};

use super::http::{Answer, Reply, ask};
use crate::real::program;

/// A request with its answer.
pub(super) struct Asked {
    pub(super) path: &'static str,
    /// The body, without `stream`.
    pub(super) body: Value,
    pub(super) answer: Answer,
}

impl Asked {
    /// Asks a server.
    pub(super) fn ask(&self, address: SocketAddr, streams: bool) -> io::Result<Reply> {
        let mut body = self.body.clone();
        body["stream"] = streams.into();
        if streams {
            body["stream_options"] = json!({ "include_usage": true });
        }
        ask(address, "POST", self.path, &body.to_string())
    }
}

/// How texts of the Bible begin, which the demo model was trained on.
const BEGINNINGS: [&str; 5] =
    ["In the beginning", "And God said, Let there be", "The sea was", "Of the sons of", "For he"];

/// Returns requests that differ, a third of them chats, half of them greedy. They share prefixes of their prompts.
fn requests(count: u64) -> Vec<Value> {
    let request = |index: u64| {
        let prompt = BEGINNINGS[index as usize % BEGINNINGS.len()].repeat(1 + index as usize % 7);
        let mut request = json!({ "max_tokens": 4 + index * 7 % 40 });
        if index.is_multiple_of(3) {
            request["messages"] = json!([{ "role": "user", "content": prompt }]);
        } else {
            request["prompt"] = prompt.into();
        }
        if index.is_multiple_of(2) {
            request["seed"] = (index * 31).into();
        } else {
            request["temperature"] = 0.into();
        }
        request
    };
    (0..count).map(request).collect()
}

/// Asks mlxcel-run, one request after the other.
pub(super) fn alone(bundle: &Path, count: u64) -> Vec<Asked> {
    let folder = tempfile::tempdir().unwrap();
    let [asked, answered] = ["requests.jsonl", "answers.jsonl"].map(|name| folder.path().join(name));
    let requests = requests(count);
    fs::write(&asked, requests.iter().map(|request| format!("{request}\n")).collect::<String>()).unwrap();
    let mut run = Command::new(program("mlxcel-run"));
    run.arg(bundle).arg("-f").arg(&asked).arg("-o").arg(&answered).args(["--parallel", "1", "-t", "2"]);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&answered).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), requests.len());
    let asked = requests.into_iter().zip(answers).map(|(body, answer)| Asked {
        path: if body.get("messages").is_some() { "/v1/chat/completions" } else { "/v1/completions" },
        body,
        answer: Answer {
            text: answer["text"].as_str().unwrap().to_owned(),
            finish: answer["stop_reason"].as_str().unwrap().replace("eos", "stop"),
            tokens: answer["tokens"].as_array().unwrap().len() as u64,
        },
    });
    asked.collect()
}
