//! Files of requests, answered by mlxcel-run with the demo model.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::real::{Built, built, models, program, request};
use serde_json::{Value, json};

/// Requests in a file.
const COUNT: u64 = 20;

/// A folder with requests.
struct Setup {
    demo: Built,
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let (demo, folder) =
            (built(&request(&models().join("demo"), &["cpu"])), tempfile::tempdir().unwrap());
        let requests: String = (1..=COUNT).map(|line| format!("{}\n", asked(line))).collect();
        fs::write(folder.path().join("requests.jsonl"), requests).unwrap();
        Self { demo, folder }
    }

    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("mlxcel-run"));
        command
            .arg(self.demo.bundle.path())
            .args(arguments)
            .args(["-t", "2"])
            .current_dir(self.folder.path());
        command
    }

    /// Returns the lines of the answers, each of which is whole, by the numbers of their requests.
    fn answers(&self) -> BTreeMap<u64, Value> {
        let text = fs::read_to_string(self.folder.path().join("answers.jsonl")).unwrap();
        let mut answers = BTreeMap::new();
        for line in text.lines() {
            let answer: Value = serde_json::from_str(line).unwrap();
            let number = answer["line"].as_u64().unwrap();
            assert!(answers.insert(number, answer).is_none(), "line {number} is there once");
        }
        answers
    }
}

/// Returns a request. Some are greedy, some sampled, and lengths differ.
fn asked(line: u64) -> Value {
    let prompts = ["The sea was", "And God said, Let there be", "In the beginning", "Of the sons of"];
    let prompt = prompts[line as usize % 4].repeat(1 + line as usize % 3);
    let mut request = json!({ "prompt": prompt, "id": format!("r{line}"), "max_tokens": 8 + line * 7 % 64 });
    if line.is_multiple_of(2) {
        request["seed"] = (line * 31).into();
    }
    request
}

#[test]
fn answers_are_those_of_single_runs() {
    let setup = Setup::new();
    let arguments = ["-f", "requests.jsonl", "--parallel", "8", "-o", "answers.jsonl"];
    let output = setup.run(&arguments).output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{notes}");
    assert!(notes.contains("cache: ") && notes.contains(" · 20 answered, 0 failed, 0 skipped · "), "{notes}");
    let answers = setup.answers();
    assert!(answers.keys().copied().eq(1..=COUNT));
    for (line, answer) in answers {
        let asked = asked(line);
        let seed = asked["seed"].as_u64().map(|seed| seed.to_string());
        let (prompt, count) = (asked["prompt"].as_str().unwrap(), asked["max_tokens"].to_string());
        let mut alone = setup.run(&["-p", prompt, "-n", &count, "--json"]);
        alone.args(seed.iter().flat_map(|seed| ["--seed", seed]));
        let output = alone.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let alone: Value = serde_json::from_slice(&output.stdout).unwrap();
        for name in ["tokens", "text", "stop_reason", "seed"] {
            assert_eq!(answer.get(name), alone.get(name), "{name} of line {line}");
        }
        assert_eq!(answer["id"], asked["id"]);
        let prompt_tokens = alone["prompt_tokens"].as_array().unwrap().len();
        assert_eq!(answer["usage"]["prompt_tokens"], prompt_tokens);
    }
}

#[test]
fn a_run_that_is_killed_is_resumed() {
    let setup = Setup::new();
    // Long enough to be killed while requests run.
    let arguments = ["-f", "requests.jsonl", "--parallel", "2", "-o", "answers.jsonl", "--seed", "5"];
    let path = setup.folder.path().join("answers.jsonl");
    let lines = || fs::read(&path).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count());
    let mut kills = 0;
    for wanted in [1, 6, 12] {
        let mut child = setup.run(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while lines() < wanted && child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        kills += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        // A kill in the middle of a write is rare, so that the last line is cut off here.
        bytes.truncate(bytes.len() - 3);
        fs::write(&path, bytes).unwrap();
    }
    assert!(kills > 0, "every run finished before it was killed");
    let kept = lines();
    let output = setup.run(&arguments).output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{notes}");
    let expected = format!(" · {} answered, 0 failed, {kept} skipped · ", COUNT as usize - kept);
    assert!(kept > 0 && notes.contains(&expected), "{expected}: {notes}");
    assert!(setup.answers().keys().copied().eq(1..=COUNT));

    // There is nothing left to ask, and the file stays as it is.
    let before = fs::read(&path).unwrap();
    let output = setup.run(&arguments).output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert!(notes.ends_with("0 answered, 0 failed, 20 skipped · 0 tokens in 0.00 s, - tok/s\n"), "{notes}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_pipe_gets_each_answer_at_once_and_ctrl_c_ends_the_run() {
    let setup = Setup::new();
    let mut command = setup.run(&["--parallel", "8"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for line in [1, 2] {
        writeln!(input, "{}", asked(line)).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["line"], &answer["id"]), (&json!(line), &asked(line)["id"]));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut notes = String::new();
    child.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
    assert!(notes.contains(" · 2 answered, 0 failed, 0 skipped · "), "{notes}");
}
