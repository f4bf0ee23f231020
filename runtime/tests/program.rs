//! The program `mlxcel-run`, up to the point where a model would run.

// Clippy allows unwrap in tests, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

mod bundle;

/// A tokenizer of the words `a` to `d`, which adds a `<s>` before a text.
const TOKENIZER: &str = r#"{
    "version": "1.0",
    "added_tokens": [{"id": 0, "content": "<s>", "special": true, "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false}],
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
    "model": {"type": "WordLevel", "vocab": {"<s>": 0, "a": 1, "b": 2, "c": 3, "d": 4, "big": 8}, "unk_token": "<s>"}
}"#;

fn weights() -> String {
    let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}"#;
    let length = String::from_utf8((header.len() as u64).to_le_bytes().to_vec()).unwrap();
    format!("{length}{header}{}", "\0".repeat(12))
}

/// Makes a folder with bundles and checkpoints.
///
/// The bundles are `b` (complete), `bare` (a module alone), `ids` (with weights) and `text` (with a tokenizer). The
/// checkpoint `checkpoint` has weights alone; `instruct` also has a tokenizer and a chat template.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name| folder.path().join(name);
    let tokenizer = ("tokenizer.json", TOKENIZER);
    bundle::write(&at("b"), &[tokenizer], &[("model.safetensors", &weights())]);
    bundle::write(&at("bare"), &[], &[]);
    bundle::write(&at("ids"), &[], &[("model.safetensors", &weights())]);
    bundle::write(&at("text"), &[tokenizer], &[]);
    for name in ["checkpoint", "instruct"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("model.safetensors"), weights()).unwrap();
    }
    fs::write(at("instruct").join("tokenizer.json"), TOKENIZER).unwrap();
    let template = r#"{"chat_template": "{% for m in messages %}{{ m.content }} {% endfor %}a a"}"#;
    fs::write(at("instruct").join("tokenizer_config.json"), template).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mlxcel-run"))
        .args(arguments)
        .current_dir(folder)
        .env("MLXCEL_STORE", folder.join(".store"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end without reading its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Returns stderr of a run that fails.
fn refused(arguments: &[&str]) -> String {
    refused_with(arguments, b"")
}

fn refused_with(arguments: &[&str], input: &[u8]) -> String {
    let Output { status, stdout, stderr } = run(folder().path(), arguments, input);
    assert_eq!((status.code(), stdout), (Some(1), vec![]));
    String::from_utf8(stderr).unwrap()
}

#[test]
fn paths_without_a_bundle() {
    let hint =
        "hint: use the last line that mlxcel-compile printed, or a name that `mlxcel-bundle list` shows\n";
    assert_eq!(
        refused(&["none", "-p", "a"]),
        format!("error: none is not a bundle: it does not exist\n{hint}")
    );
    assert_eq!(
        refused(&["checkpoint", "-p", "a"]),
        format!("error: checkpoint is not a bundle: it has no manifest.toml\n{hint}")
    );
    let checkpoint = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/demo");
    assert_eq!(
        refused(&[checkpoint, "-p", "a"]),
        format!(
            "error: {checkpoint} is not a bundle: it has no manifest.toml\n\
             hint: this is a checkpoint: compile it with `mlxcel-compile --model {checkpoint}`\n"
        )
    );
}

#[test]
fn prompts_that_are_empty() {
    let empty = "error: the prompt is empty, expected a text\n\
                 hint: give a text with -p, -f or on standard input, or ids with --tokens\n";
    assert_eq!(refused(&["b", "-p", ""]), empty);
    for input in [&b""[..], b"\n", b"\r\n"] {
        assert_eq!(refused_with(&["b"], input), empty);
        assert_eq!(refused_with(&["b", "-f", "/dev/stdin"], input), empty);
    }
    // A message of a chat may be empty.
    let message = refused(&["bare", "--weights", "instruct", "--chat", "-p", ""]);
    assert!(message.starts_with("warning: the bundle does not use"), "{message}");
}

#[test]
fn prompts_that_have_no_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let plain = TOKENIZER.replace(r#"{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Seq"#, r#"{"Seq"#);
    bundle::write(
        &folder.path().join("b"),
        &[("tokenizer.json", &plain)],
        &[("model.safetensors", &weights())],
    );
    let output = run(folder.path(), &["b", "-p", " "], b"");
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap()),
        (
            Some(1),
            "error: the prompt has no tokens, expected at least one\n\
             hint: give a text with -p, -f or on standard input, or ids with --tokens\n"
                .into()
        )
    );
}

#[test]
fn options_without_effect_are_warnings() {
    let warning = |more: &[&str]| {
        let message = refused(&[&["b", "-p", "big"][..], more].concat());
        let (warning, error) = message.split_once('\n').unwrap();
        assert!(error.starts_with("error: token 2 of the prompt"), "{message}");
        warning.to_string()
    };
    assert_eq!(
        warning(&["-t", "2", "--device", "local-sync"]),
        "warning: --threads has no effect on local-sync: it is for local-task"
    );
    assert_eq!(
        warning(&["--temp", "0", "--top-k", "4", "--seed", "1"]),
        "warning: --top-k, --seed have no effect: --temp 0 always takes the most likely token"
    );
    assert!(refused(&["b", "-p", "big", "-t", "2", "--temp", "0"]).starts_with("error: "));
}

#[test]
fn prompts_that_do_not_fit() {
    let long = "a ".repeat(16);
    let message = "error: 17 tokens, expected at most 16, the size of the context\n\
                   hint: shorten the prompt, raise --ctx-size if it was given, or compile the bundle again with a larger one\n";
    assert_eq!(refused(&["b", "-p", &long]), message);
    assert_eq!(refused_with(&["b"], long.as_bytes()), message);
    assert!(
        refused(&["b", "--ctx-size", "2", "-p", "a a"])
            .starts_with("error: 3 tokens, expected at most 2, the size of the context\n")
    );
    assert_eq!(
        refused(&["b", "--ctx-size", "17", "-p", "a"]),
        "error: context of 17 tokens, expected 1 to 16\n\
         hint: the bundle was compiled for 16: leave out --ctx-size, or compile it again with a larger one\n"
    );
}

#[test]
fn token_ids_out_of_range() {
    let second = "error: token 2 of the prompt has the id 8, expected 0 to 7\n\
                  hint: give ids of the model's own tokenizer\n";
    assert_eq!(refused(&["b", "--tokens", "7,8"]), second);
    assert!(
        refused(&["ids", "--tokens", "4294967295"])
            .starts_with("error: token 1 of the prompt has the id 4294967295, expected 0 to 7\n")
    );
    // A tokenizer with more ids than the model.
    assert_eq!(refused(&["b", "-p", "big"]), second);
}

#[test]
fn no_tokenizer() {
    let message = "error: no tokenizer in ids: expected a tokenizer.json\n\
                   hint: name a checkpoint's folder that has one with --weights, or compile the bundle from such a \
                   folder or with --weights FOLDER\n\
                   hint: without a tokenizer, give mlxcel-run token ids with --tokens\n";
    assert_eq!(refused(&["ids", "-p", "a"]), message);
    assert_eq!(refused_with(&["ids"], b"a"), message);
    assert_eq!(refused(&["ids", "--tokens", "1", "--stop", "x"]), message);
    assert!(
        refused(&["bare", "--weights", "checkpoint", "-p", "a"])
            .starts_with("error: no tokenizer in bare or checkpoint: ")
    );
    // An error of the weights comes first, because their folder may have the tokenizer.
    for arguments in [&["bare", "-p", "a"], &["bare", "--tokens", "1"]] {
        assert_eq!(
            refused(arguments),
            "error: bare carries no weights\nhint: name the checkpoint's folder, or a safetensors file, with --weights\n"
        );
    }
}

#[test]
fn the_folder_of_the_weights_has_a_tokenizer() {
    let of = |prompt: &str, more: &[&str]| {
        refused(&[&["bare", "--weights", "instruct", "-p", prompt][..], more].concat())
    };
    // Runs until the module is loaded, which is not a vmfb.
    assert!(of("a", &[]).contains("error: the vmfb of target ") || cfg!(not(feature = "iree")));
    // `<s>` and 16 words; with the template, which writes no `<s>`, 15 words and its 2.
    assert!(of(&"a ".repeat(16), &[]).starts_with("error: 17 tokens, "));
    assert!(of(&"a ".repeat(15), &["--chat"]).starts_with("error: 17 tokens, "));
    assert!(of(&"a ".repeat(14), &["--system", "b"]).starts_with("error: 17 tokens, "));
    // The folder of a single safetensors file is not searched.
    assert!(
        refused(&["bare", "--weights", "instruct/model.safetensors", "-p", "a"])
            .starts_with("error: no tokenizer in bare: ")
    );
}

#[test]
fn a_damaged_tokenizer() {
    let folder = folder();
    bundle::write(
        &folder.path().join("damaged"),
        &[("tokenizer.json", "{}")],
        &[("model.safetensors", &weights())],
    );
    let stderr = |arguments: &[&str]| String::from_utf8(run(folder.path(), arguments, b"").stderr).unwrap();
    let message = stderr(&["damaged", "-p", "a"]);
    assert!(message.starts_with("error: cannot understand tokenizer.json in damaged: "), "{message}");
    assert!(
        message
            .ends_with("\nhint: take the checkpoint's own tokenizer.json, or give token ids with --tokens\n")
    );
    // A stop text needs it.
    assert_eq!(stderr(&["damaged", "--tokens", "1", "--stop", "x"]), message);
    // Token ids do not, so that the weights and the module are next.
    let message = stderr(&["damaged", "--tokens", "1"]);
    let mut lines = message.lines();
    let warning = lines.next().unwrap();
    assert!(warning.starts_with("warning: cannot understand tokenizer.json in damaged: "), "{warning}");
    assert!(warning.ends_with(": the answer is written as token ids"), "{warning}");
    assert_eq!(lines.next(), Some("warning: the bundle does not use 1 of the weights: x"));
}

#[test]
fn no_chat_template() {
    let message = "error: no chat template in b: expected a chat_template.jinja, or one in a tokenizer_config.json\n\
                   hint: leave out --chat and --system to continue the text as it is\n";
    assert_eq!(refused(&["b", "-p", "a", "--chat"]), message);
    assert_eq!(refused(&["b", "-p", "a", "--system", "be brief"]), message);
}

#[test]
fn files_that_cannot_be_read() {
    assert_eq!(
        refused(&["b", "-f", "none"]),
        "error: cannot read none: No such file or directory (os error 2)\n\
         hint: -f names a file, -p gives the prompt itself\n"
    );
    assert_eq!(
        refused_with(&["b"], b"ab\xff"),
        "error: standard input is not UTF-8 at offset 2, expected text\nhint: convert it with iconv -t UTF-8\n"
    );
    assert_eq!(
        refused(&["b", "-p", "a", "--weights", "none"]),
        "error: found nothing at none, expected a folder with weights or a safetensors file\n\
         hint: name the checkpoint's folder, or a safetensors file, with --weights\n"
    );
    assert_eq!(
        refused(&["b", "-p", "a", "--weights", "text"]),
        "error: found no weights in text, expected model.safetensors or model.safetensors.index.json\n\
         hint: name the checkpoint's folder, or a safetensors file, with --weights\n"
    );
}

#[test]
fn sampling_out_of_range() {
    assert_eq!(
        refused(&["b", "-p", "a", "--top-p", "0"]),
        "error: --top-p is 0, expected above 0 and at most 1\nhint: 1 draws from all tokens\n"
    );
    assert_eq!(
        refused(&["b", "-p", "a", "--temp", "nan"]),
        "error: --temp is NaN, expected 0 or more\nhint: 0 always takes the most likely token\n"
    );
}

#[test]
fn usage() {
    for arguments in
        [&[][..], &["b", "--frobnicate"], &["b", "-p", "a", "--device", "tpu"], &["b", "--tokens", "x"]]
    {
        let output = run(Path::new("."), arguments, b"");
        assert_eq!((output.status.code(), output.stdout), (Some(2), vec![]));
    }
    let help = run(Path::new("."), &["--help"], b"");
    assert!(help.status.success() && help.stderr.is_empty());
}

#[test]
fn unused_tensors_are_a_warning() {
    for arguments in [&["b", "-p", "a"][..], &["text", "-p", "a", "--weights", "checkpoint"]] {
        let message = refused(arguments);
        let mut lines = message.lines();
        assert_eq!(lines.next(), Some("warning: the bundle does not use 1 of the weights: x"));
        // A note about code from elsewhere comes before it runs.
        assert!(lines.next().is_some_and(|line| line.starts_with("note: the bundle ")));
        assert!(lines.next().is_some_and(|line| line.starts_with("hint: --require-signature ")));
        // Then the module is refused, which is not a vmfb.
        assert!(lines.next().is_some_and(|line| line.starts_with("error: ")), "{message}");
    }
}

#[cfg(not(feature = "iree"))]
#[test]
fn built_without_iree() {
    let message = refused(&["b", "-p", "a"]);
    assert!(
        message.contains(
            "error: built without the IREE runtime\nhint: build with the feature iree: cargo build "
        ),
        "{message}"
    );
}

/// Returns stderr of a run that answers a file of requests up to the module, which is not a vmfb.
fn requests(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments, b"");
    assert_eq!((output.status.code(), output.stdout), (Some(1), vec![]));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn files_of_requests() {
    let folder = folder();
    let in_folder = |arguments: &[&str]| requests(folder.path(), arguments);
    fs::write(folder.path().join("x.jsonl"), "{\"prompt\": \"a\"}\n").unwrap();
    fs::write(folder.path().join("empty.jsonl"), "\n").unwrap();
    assert_eq!(
        in_folder(&["b", "-f", "none.jsonl"]),
        "error: cannot read none.jsonl: No such file or directory (os error 2)\n\
         hint: -f names a file with a request in each line\n"
    );
    assert!(
        in_folder(&["b", "-f", "x.jsonl", "-c", "17"]).starts_with("error: context of 17 tokens, expected 1")
    );
    assert!(in_folder(&["b", "-f", "x.jsonl", "--chat"]).starts_with("error: no chat template in b: "));
    assert!(in_folder(&["ids", "-f", "x.jsonl", "--stop", "a"]).starts_with("error: no tokenizer in ids: "));
    assert_eq!(
        in_folder(&["b", "-f", "checkpoint/model.safetensors", "-o", "out"]),
        "error: found -o without requests, expected a file of them\n\
         hint: give -f requests.jsonl or --parallel, or redirect the answer to one prompt with >\n"
    );
    // A file without requests needs no model.
    let output = run(folder.path(), &["b", "-f", "empty.jsonl"], b"");
    assert_eq!((output.status.code(), output.stdout), (Some(0), vec![]));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "0 answered, 0 failed, 0 skipped · 0 tokens in 0.00 s, - tok/s\n"
    );
}

#[test]
fn files_of_answers() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("x.jsonl"), "{\"prompt\": \"a\"}\n").unwrap();
    fs::write(at("thesis.tex"), "precious\n").unwrap();
    let message = requests(folder.path(), &["b", "-f", "x.jsonl", "-o", "thesis.tex"]);
    assert_eq!(
        message,
        "error: line 1 of thesis.tex is no answer, expected none but those of an earlier run\n\
         hint: choose another file for -o\n"
            .replace("thesis.tex", &at("thesis.tex").canonicalize().unwrap().display().to_string())
    );
    assert_eq!(fs::read_to_string(at("thesis.tex")).unwrap(), "precious\n");
    // The requests themselves are no answers.
    let message = requests(folder.path(), &["b", "-f", "x.jsonl", "-o", "x.jsonl"]);
    assert!(message.contains("x.jsonl is no answer, expected"), "{message}");
    let message = requests(folder.path(), &["b", "-f", "x.jsonl", "-o", "none/answers"]);
    assert_eq!(
        message,
        "error: cannot open none/answers: No such file or directory (os error 2)\n\
         hint: -o names the file that the answers are added to\n"
    );
    fs::write(at("answers"), "{\"line\":1,\"request\":\"00\"}\n").unwrap();
    let message = requests(folder.path(), &["b", "--parallel", "2", "-o", "answers"]);
    assert_eq!(
        message,
        "error: answers has answers, and standard input is read only once, expected a file of requests to resume\n\
         hint: give the requests as a file with -f, or choose another file for -o\n"
    );
}
