//! Files of requests over a scripted model.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use clap::Parser as _;
use mlxcel_runtime::{
    Cancel, ChatTemplate, Engine, EngineSettings, Tokenizer, model::ModelLimits, scripted::ScriptedModel,
};
use serde_json::{Value, json};

use super::*;

/// What was written, also after the writer has gone.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Each answer comes in one piece, so that a kill leaves whole lines.
        assert!(bytes.ends_with(b"}\n") && bytes.iter().filter(|&&byte| byte == b'\n').count() == 1);
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn tokenizer() -> Tokenizer {
    let json = r#"{"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "u": 4}}}"#;
    Tokenizer::from_json(json.as_bytes()).unwrap()
}

fn template() -> ChatTemplate {
    let source = "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}\
                  {{ m.content }} {% endfor %}d";
    ChatTemplate::new(Some(source.to_owned()), "{}").unwrap().unwrap()
}

/// A model whose logits depend on all tokens that a row sees: the next id is likely, but any can be drawn.
fn model() -> ScriptedModel {
    ScriptedModel::of_tokens(256, 8, |tokens| {
        let next =
            tokens.iter().enumerate().map(|(at, token)| (at + 1) * (*token as usize + 1)).sum::<usize>();
        (0..8).map(|id| if id == next % 5 { 3.0 } else { 0.1 * id as f32 }).collect()
    })
}

/// A run over a scripted model.
struct Setup {
    model: ScriptedModel,
    asker: Asker,
    parallel: usize,
    cancel: Cancel,
    done: HashSet<u64>,
}

impl Setup {
    fn new(arguments: &[&str]) -> Self {
        let arguments = ["mlxcel-run", "bundle", "-f", "x.jsonl", "-n", "6"].iter().chain(arguments);
        let options = Options::try_parse_from(arguments).unwrap();
        let asker = Asker::with(&options, Ok(tokenizer()), Ok(template()), vec![7]);
        let (parallel, cancel) = (options.parallel(), Cancel::new());
        Self { model: model(), asker, parallel, cancel, done: HashSet::new() }
    }

    /// Returns the totals and the answers, in the order in which they were written.
    fn run(self, requests: &str) -> (Result<Totals>, Vec<Value>) {
        let (written, settings) = (Written::default(), EngineSettings::default());
        let clock = self.model.clock();
        let mut engine = Engine::with_clock(self.model, settings, clock).unwrap();
        let progress = Progress::start(None);
        let answering = Answering {
            engine: &mut engine,
            asker: &self.asker,
            done: &self.done,
            parallel: self.parallel,
            answers: Answers::to(written.clone()),
            progress: &progress,
            cancel: &self.cancel,
            jobs: HashMap::new(),
            totals: Totals::default(),
        };
        let lines = Lines::new(io::Cursor::new(requests.as_bytes().to_vec()));
        let totals = answering.run(&mut Requests::File(lines));
        assert!(engine.is_idle() || totals.is_err() || self.cancel.is_cancelled());
        let bytes = written.0.lock().unwrap().clone();
        let answers = String::from_utf8(bytes).unwrap();
        (totals, answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }
}

/// Returns the only answer to a request.
fn answer(arguments: &[&str], request: Value) -> Value {
    let (totals, mut answers) = Setup::new(arguments).run(&request.to_string());
    assert_eq!((totals.unwrap().answered, answers.len()), (1, 1), "{answers:?}");
    answers.remove(0)
}

#[test]
fn an_answer_has_all_its_fields() {
    let found = answer(&[], json!({ "prompt": "b c", "id": "x", "max_tokens": 3, "logprobs": 1 }));
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    let expected = ["line", "id", "request", "text", "tokens", "stop_reason", "usage", "timings", "logprobs"];
    assert_eq!(keys, expected);
    assert_eq!((&found["line"], &found["id"]), (&json!(1), &json!("x")));
    assert_eq!(found["tokens"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        found["usage"],
        json!({ "prompt_tokens": 2, "cached_tokens": 0, "completion_tokens": 3,
        "drafted_tokens": 0, "accepted_tokens": 0 })
    );
    let timings: Vec<&String> = found["timings"].as_object().unwrap().keys().collect();
    assert_eq!(timings, ["queued_ms", "prefill_ms", "decode_ms", "prefill_tok_s", "decode_tok_s"]);
    assert_eq!(found["logprobs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn answers_are_those_of_runs_one_at_a_time() {
    let mut requests = String::new();
    for index in 0..40 {
        let prompt = "a b c d c b a d ".repeat(1 + index % 7) + ["a", "b", "c", "d"][index % 4];
        let mut request = json!({ "prompt": prompt, "max_tokens": 1 + index % 9 });
        match index % 3 {
            0 => request["seed"] = (index as u64).into(),
            1 => request["temperature"] = json!(0.7),
            _ => request["temperature"] = json!(0),
        }
        requests += &format!("{request}\n");
    }
    let run = |arguments: &[&str]| {
        let (totals, mut answers) = Setup::new(arguments).run(&requests);
        assert_eq!(totals.unwrap().answered, 40);
        let order: Vec<u64> = answers.iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
        answers.sort_by_key(|answer| answer["line"].as_u64());
        let plain =
            |answer: Value| (answer["tokens"].clone(), answer["text"].clone(), answer["seed"].clone());
        (order, answers.into_iter().map(plain).collect::<Vec<_>>())
    };
    let (order, alone) = run(&["--parallel", "1", "--seed", "9"]);
    assert!(order.is_sorted());
    assert_eq!((&alone[0].2, &alone[1].2, &alone[2].2), (&json!(0), &json!(9 + 2), &Value::Null));
    for more in [&[][..], &["--speculate"]] {
        let (order, together) = run(&[&["--parallel", "5", "--seed", "9"], more].concat());
        assert_eq!(together, alone);
        assert!(!order.is_sorted(), "a short answer does not wait for a long one before it");
    }
}

#[test]
fn the_command_line_has_the_defaults() {
    let count =
        |arguments: &[&str], request: Value| answer(arguments, request)["tokens"].as_array().unwrap().len();
    assert_eq!(count(&[], json!({ "prompt": "b" })), 6);
    assert_eq!(count(&[], json!({ "prompt": "b", "max_tokens": 2 })), 2);
    // null is as if the field were not there.
    assert_eq!(count(&[], json!({ "prompt": "b", "max_tokens": null, "stop": null })), 6);
    let seed = |arguments: &[&str], request: Value| answer(arguments, request)["seed"].clone();
    assert_eq!(seed(&["--seed", "4"], json!({ "prompt": "b" })), json!(5));
    assert_eq!(seed(&["--seed", "4"], json!({ "prompt": "b", "seed": 7 })), json!(7));
    assert_eq!(seed(&["--seed", "4"], json!({ "prompt": "b", "temperature": 0 })), Value::Null);
    assert_eq!(seed(&["--seed", "18446744073709551615"], json!({ "prompt": "b" })), json!(0));
    let full = answer(&[], json!({ "prompt": "b", "max_tokens": 9999 }));
    assert_eq!(full["stop_reason"], "context");
}

#[test]
fn prompts_are_texts_chats_or_tokens() {
    let prompt =
        |arguments: &[&str], request: Value| answer(arguments, request)["usage"]["prompt_tokens"].clone();
    let user = json!({ "role": "user", "content": "b" });
    let system = json!({ "role": "system", "content": "c c" });
    assert_eq!(prompt(&[], json!({ "prompt": "b" })), 1);
    assert_eq!(prompt(&["--chat"], json!({ "prompt": "b" })), 2);
    assert_eq!(prompt(&["--system", "a a a"], json!({ "prompt": "b" })), 5);
    assert_eq!(prompt(&[], json!({ "messages": [user] })), 2);
    assert_eq!(prompt(&["--system", "a a a"], json!({ "messages": [user] })), 5);
    assert_eq!(prompt(&["--system", "a a a"], json!({ "messages": [system, user] })), 4);
    assert_eq!(prompt(&["--system", "a a a"], json!({ "tokens": [1, 2] })), 2);
}

#[test]
fn a_stop_text_ends_an_answer_also_among_drafts() {
    let all = answer(&[], json!({ "prompt": "b c" }));
    let text = all["text"].as_str().unwrap();
    let stop = &text[1..3];
    let expected = &text[..text.find(stop).unwrap()];
    for (arguments, request) in [
        (&[][..], json!({ "prompt": "b c", "stop": stop })),
        (&["--stop", stop], json!({ "prompt": "b c" })),
        (&["--stop", stop, "--speculate"], json!({ "prompt": "b c" })),
        (&["--stop", &text[..1]], json!({ "prompt": "b c", "stop": ["zz", stop] })),
    ] {
        let found = answer(arguments, request);
        assert_eq!((found["text"].as_str(), found["stop_reason"].as_str()), (Some(expected), Some("stop")));
    }
    let found = answer(&["--stop", stop], json!({ "prompt": "b c", "stop": [] }));
    assert_eq!(found["text"], text);
}

#[test]
fn lines_with_errors_leave_the_others() {
    let requests = "{\"prompt\": \"b\"}\n\nnonsense\n{\"id\": 7, \"tokens\": [1, 8]}\n{\"prompt\": \"c\"}\n";
    let (totals, mut answers) = Setup::new(&[]).run(requests);
    let expected = Totals { answered: 2, failed: 2, tokens: 12, ..Totals::default() };
    assert_eq!(totals.unwrap(), expected);
    answers.sort_by_key(|answer| answer["line"].as_u64());
    let lines: Vec<u64> = answers.iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1, 3, 4, 5]);
    assert_eq!(
        answers[2],
        json!({ "line": 4, "id": 7, "error": "token 2 of the prompt has the id 8, expected 0 to 7\n\
            hint: give ids of the model's own tokenizer" })
    );
}

#[test]
fn a_request_that_never_fits_is_refused() {
    let limits =
        |model: &ScriptedModel| -> ModelLimits { mlxcel_runtime::ModelRunner::limits(model).clone() };
    let mut small = limits(&model());
    small.pools[0].pages = 1;
    let mut setup = Setup::new(&[]);
    setup.model = ScriptedModel::new(small, |_, _| vec![1.0; 8]);
    let (totals, answers) = setup.run("{\"prompt\": \"b\", \"max_tokens\": 100}\n{\"prompt\": \"b\"}");
    let Totals { answered, failed, .. } = totals.unwrap();
    assert_eq!((answered, failed), (1, 1));
    assert_eq!(
        answers[0]["error"],
        "the request needs 2 pages, expected at most 1\n\
         hint: shorten the prompt, lower the largest number of tokens, or give a larger --cache-size"
    );
}

#[test]
fn lines_that_are_done_are_skipped() {
    let mut setup = Setup::new(&[]);
    setup.done = [1, 3].into();
    let (totals, answers) = setup.run("{\"prompt\": \"b\"}\n{\"prompt\": \"c\"}\nno request\n");
    let Totals { answered, failed, skipped, .. } = totals.unwrap();
    assert_eq!((answered, failed, skipped), (1, 0, 2));
    assert_eq!((answers.len(), &answers[0]["line"]), (1, &json!(2)));
}

#[test]
fn a_step_that_fails_ends_its_requests_alone() {
    let mut setup = Setup::new(&["--parallel", "2"]);
    setup.model = setup.model.failing([1]);
    let requests = "{\"prompt\": \"b\"}\n{\"prompt\": \"c\"}\n{\"prompt\": \"d\"}\n";
    let (totals, answers) = setup.run(requests);
    let Totals { answered, failed, .. } = totals.unwrap();
    assert_eq!((answered, failed), (1, 2));
    let errors: Vec<&str> = answers.iter().filter_map(|answer| answer["error"].as_str()).collect();
    assert_eq!(
        errors[0],
        "a step of 2 requests failed: cannot run step 1: the script says so\n\
        hint: submit the request again\n\
        hint: try --device local-sync; if that fails too, compile the bundle again with this version"
    );
}

#[test]
fn an_engine_that_stops_ends_the_run() {
    let mut setup = Setup::new(&["--parallel", "1"]);
    setup.model = setup.model.failing(0..100);
    let (totals, answers) = setup.run(&"{\"prompt\": \"b\"}\n".repeat(9));
    let error = mlxcel_artifacts::report(totals.unwrap_err().as_ref());
    assert!(
        error.starts_with("error: 3 steps failed one after another: the engine has stopped: "),
        "{error}"
    );
    // The others were not asked, and are when the run is resumed.
    assert_eq!(answers.len(), 3);
}

#[test]
fn ctrl_c_keeps_what_is_written() {
    let setup = Setup::new(&[]);
    setup.cancel.cancel();
    let (totals, answers) = setup.run("{\"prompt\": \"b\"}\n");
    assert_eq!(totals.unwrap(), Totals { is_cancelled: true, ..Totals::default() });
    assert!(answers.is_empty());
}

#[test]
fn without_a_tokenizer_tokens_are_answered_with_tokens() {
    let mut setup = Setup::new(&[]);
    let options = Options::try_parse_from(["mlxcel-run", "bundle", "-f", "x.jsonl", "-n", "2"]).unwrap();
    setup.asker = Asker::with(&options, Err("no tokenizer".into()), Err("no template".into()), vec![]);
    let (totals, answers) = setup.run(
        "{\"tokens\": [1]}\n{\"prompt\": \"b\"}\n{\"tokens\": [1], \"stop\": \"x\"}\n\
         {\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}\n",
    );
    let Totals { answered, failed, .. } = totals.unwrap();
    assert_eq!((answered, failed), (1, 3));
    let errors: Vec<&Value> = answers.iter().map(|answer| &answer["error"]).collect();
    assert_eq!(errors, [&json!("no tokenizer"), &json!("no tokenizer"), &json!("no template"), &Value::Null]);
    let answer = answers.last().unwrap();
    assert!(answer.get("text").is_none() && answer["tokens"].as_array().is_some_and(|ids| ids.len() == 2));
}
