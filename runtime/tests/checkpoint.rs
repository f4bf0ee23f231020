//! A checkpoint's small files, from a bundle and from the folder of its weights.

// Clippy allows unwrap in tests, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Bundle, report};
use mlxcel_runtime::{ChatTemplate, CheckpointFiles, Message, Tokenizer, eos_ids};

mod bundle;

/// Returns a tokenizer.json of one word with the id 1.
fn tokenizer(word: &str) -> String {
    format!(
        r#"{{"version": "1.0", "model": {{"type": "WordLevel", "vocab": {{"?": 0, "{word}": 1}}, "unk_token": "?"}}}}"#
    )
}

struct Places {
    folder: tempfile::TempDir,
    bundle: Bundle,
}

/// Makes a bundle `b` and a checkpoint `c` with these files.
fn places(in_bundle: &[(&str, &str)], in_folder: &[(&str, &str)]) -> Places {
    let folder = tempfile::tempdir().unwrap();
    let bundle = bundle::write(&folder.path().join("b"), in_bundle, &[]);
    fs::create_dir(folder.path().join("c")).unwrap();
    for (name, text) in in_folder {
        fs::write(folder.path().join("c").join(name), text).unwrap();
    }
    Places { folder, bundle }
}

impl Places {
    fn checkpoint(&self) -> PathBuf {
        self.folder.path().join("c")
    }

    fn shown(&self, error: &mlxcel_runtime::Error) -> String {
        report(error).replace(&format!("{}/", self.folder.path().display()), "")
    }
}

fn word_of(files: &CheckpointFiles<'_>) -> String {
    Tokenizer::from_checkpoint(files).unwrap().decode(&[1]).unwrap()
}

fn chat(files: &CheckpointFiles<'_>) -> String {
    ChatTemplate::from_checkpoint(files).unwrap().render(&vec![Message::new("user", "x")].into()).unwrap()
}

#[test]
fn files_that_the_bundle_lacks_come_from_the_folder() {
    let text = tokenizer("folder");
    let config = r#"{"chat_template": "{{ bos_token }} folder", "bos_token": "<s>"}"#;
    let both = places(
        &[("config.json", r#"{"eos_token_id": 3}"#)],
        &[
            ("config.json", r#"{"eos_token_id": 4}"#),
            ("generation_config.json", r#"{"eos_token_id": [5, 6]}"#),
            ("tokenizer.json", &text),
            ("tokenizer_config.json", config),
        ],
    );
    let checkpoint = both.checkpoint();
    let files = CheckpointFiles::new(&both.bundle, Some(&checkpoint));
    assert_eq!(word_of(&files), "folder");
    assert_eq!(chat(&files), "<s> folder");
    // From the bundle's config.json and the folder's generation_config.json.
    assert_eq!(eos_ids(&files).unwrap(), [3, 5, 6]);
}

#[test]
fn files_of_the_bundle_take_precedence() {
    let (own, other) = (tokenizer("bundle"), tokenizer("folder"));
    let config = r#"{"chat_template": "{{ bos_token }} bundle", "bos_token": "<b>"}"#;
    let both = places(
        &[
            ("tokenizer.json", &own),
            ("tokenizer_config.json", config),
            ("generation_config.json", r#"{"eos_token_id": 3}"#),
        ],
        &[
            ("tokenizer.json", &other),
            // Within the folder it would take precedence over tokenizer_config.json.
            ("chat_template.jinja", "{{ bos_token }} folder"),
            ("tokenizer_config.json", r#"{"bos_token": "<f>"}"#),
            ("generation_config.json", r#"{"eos_token_id": 4}"#),
        ],
    );
    let checkpoint = both.checkpoint();
    let files = CheckpointFiles::new(&both.bundle, Some(&checkpoint));
    assert_eq!(word_of(&files), "bundle");
    assert_eq!(chat(&files), "<b> bundle");
    assert_eq!(eos_ids(&files).unwrap(), [3]);
}

#[test]
fn a_template_goes_with_the_special_tokens_beside_it() {
    let both = places(
        &[("tokenizer_config.json", r#"{"bos_token": "<b>"}"#)],
        &[("chat_template.jinja", "{{ bos_token }}"), ("tokenizer_config.json", r#"{"bos_token": "<f>"}"#)],
    );
    let checkpoint = both.checkpoint();
    assert_eq!(chat(&CheckpointFiles::new(&both.bundle, Some(&checkpoint))), "<f>");
}

#[test]
fn messages_name_both_places() {
    let none = places(&[], &[]);
    let checkpoint = none.checkpoint();
    let files = CheckpointFiles::new(&none.bundle, Some(&checkpoint));
    assert_eq!(
        none.shown(&Tokenizer::from_checkpoint(&files).unwrap_err()),
        "error: no tokenizer in b or c: expected a tokenizer.json\n\
         hint: name a checkpoint's folder that has one with --weights, or compile the bundle from such a folder or \
         with --weights FOLDER\n\
         hint: without a tokenizer, give mlxcel-run token ids with --tokens"
    );
    assert_eq!(
        none.shown(&ChatTemplate::from_checkpoint(&files).unwrap_err()),
        "error: no chat template in b or c: expected a chat_template.jinja, or one in a tokenizer_config.json\n\
         hint: leave out --chat and --system to continue the text as it is"
    );
    assert!(eos_ids(&files).unwrap().is_empty());
}

#[test]
fn damaged_files_of_the_folder_are_named() {
    let damaged = places(&[], &[("tokenizer.json", "{}"), ("generation_config.json", "{")]);
    let checkpoint = damaged.checkpoint();
    let files = CheckpointFiles::new(&damaged.bundle, Some(&checkpoint));
    let message = damaged.shown(&Tokenizer::from_checkpoint(&files).unwrap_err());
    assert!(message.starts_with("error: cannot understand tokenizer.json in c: "), "{message}");
    let message = damaged.shown(&eos_ids(&files).unwrap_err());
    assert!(message.starts_with("error: cannot understand generation_config.json in c: "), "{message}");
    fs::write(checkpoint.join("chat_template.jinja"), b"a\xff").unwrap();
    assert_eq!(
        damaged.shown(&ChatTemplate::from_checkpoint(&files).unwrap_err()),
        "error: chat_template.jinja in c is not UTF-8 at offset 1, expected text\nhint: take the checkpoint's own file"
    );
}

#[test]
fn folders_are_not_read_as_files() {
    let empty = places(&[], &[]);
    let checkpoint = empty.checkpoint();
    fs::create_dir(checkpoint.join("tokenizer.json")).unwrap();
    let message = |folder: &Path| {
        let files = CheckpointFiles::new(&empty.bundle, Some(folder));
        empty.shown(&Tokenizer::from_checkpoint(&files).unwrap_err())
    };
    assert!(message(&checkpoint).starts_with("error: no tokenizer in b or c: "));
    assert!(message(&checkpoint.join("none")).starts_with("error: no tokenizer in b or c/none: "));
}
