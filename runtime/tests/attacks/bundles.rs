//! Bundles with missing, damaged or replaced files.

use std::{fs, path::Path};

use mlxcel_artifacts::{Blob, Bundle, Digest, Manifest, report};
use mlxcel_runtime::{
    Chat, ChatTemplate, CheckpointFiles, DeviceSpec, Error, LoadOptions, Tokenizer, Weights, eos_ids, load,
};

#[path = "../bundle/mod.rs"]
mod bundle;

use bundle::write;

fn own(bundle: &Bundle) -> CheckpointFiles<'_> {
    CheckpointFiles::new(bundle, None)
}

fn shown<T: std::fmt::Debug>(found: Result<T, Error>, folder: &Path) -> String {
    report(&found.unwrap_err()).replace(&format!("{}/", folder.display()), "")
}

#[test]
fn missing_files() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = write(&folder.path().join("b"), &[], &[]);
    assert_eq!(
        shown(Tokenizer::from_bundle(&bundle), folder.path()),
        "error: no tokenizer in b: expected a tokenizer.json\n\
         hint: name a checkpoint's folder that has one with --weights, or compile the bundle from such a folder or \
         with --weights FOLDER\n\
         hint: without a tokenizer, give mlxcel-run token ids with --tokens"
    );
    assert_eq!(
        shown(ChatTemplate::from_checkpoint(&own(&bundle)), folder.path()),
        "error: no chat template in b: expected a chat_template.jinja, or one in a tokenizer_config.json\n\
         hint: leave out --chat and --system to continue the text as it is"
    );
    assert_eq!(
        shown(Weights::from_bundle(&bundle), folder.path()),
        "error: b carries no weights\nhint: name the checkpoint's folder, or a safetensors file, with --weights"
    );
    assert!(eos_ids(&own(&bundle)).unwrap().is_empty());
}

#[test]
fn damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = [
        ("tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [\"a b\"]}}"),
        ("tokenizer_config.json", "{\"chat_template\": 3}"),
        ("config.json", "{\"eos_token_id\": -1}"),
    ];
    let bundle = write(&folder.path().join("b"), &damaged, &[("model.safetensors", "12345678{}")]);
    assert!(
        shown(Tokenizer::from_bundle(&bundle), folder.path())
            .starts_with("error: cannot understand tokenizer.json in b: ")
    );
    assert!(shown(ChatTemplate::from_checkpoint(&own(&bundle)), folder.path()).starts_with(
        "error: cannot understand tokenizer_config.json in b: chat_template: expected a template"
    ));
    assert_eq!(
        shown(eos_ids(&own(&bundle)), folder.path()),
        "error: cannot understand config.json in b: eos_token_id: expected a token id or a list of them at line 1 \
         column 20\nhint: take the checkpoint's own file"
    );
    assert!(shown(Weights::from_bundle(&bundle), folder.path()).contains(" is damaged: found a header of "));
}

/// Files may be replaced while the bundle is open.
#[test]
fn files_replaced_after_they_were_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    let weights = [("model.safetensors", "12345678{}")];
    write(&path, &[("tokenizer.json", "{\"model\": 1}"), ("config.json", "{}")], &weights);
    let bundle = Bundle::open_without_weights(&path).unwrap();
    let Manifest { targets, files, .. } = bundle.manifest();
    let replaced = |blob: &Blob| {
        let other = vec![b' '; usize::try_from(blob.size).unwrap()];
        fs::write(bundle.blob_path(blob), &other).unwrap();
        let expected = blob.digest;
        format!(
            "has digest {}, expected {expected}\n\
             hint: the bundle is damaged: copy all of its files again, or compile it again with `mlxcel-compile`",
            Digest::of(&other)
        )
    };
    let expected = replaced(&files["tokenizer.json"]);
    let found = shown(Tokenizer::from_bundle(&bundle), folder.path());
    assert_eq!(found, format!("error: file tokenizer.json {expected}"));
    let expected = replaced(&files["config.json"]);
    assert_eq!(shown(eos_ids(&own(&bundle)), folder.path()), format!("error: file config.json {expected}"));
    let expected = replaced(&targets["cpu"].vmfb);
    if cfg!(feature = "iree") {
        let options = LoadOptions { device: DeviceSpec::LocalSync, ..LoadOptions::default() };
        let refused = load(&bundle, None, &options).map(drop);
        assert_eq!(shown(refused, folder.path()), format!("error: vmfb of target cpu {expected}"));
    }
}

#[test]
fn eos_of_both_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("config.json", "{\"eos_token_id\": 7}"),
        ("generation_config.json", "{\"eos_token_id\": [9, 7, 8]}"),
    ];
    let bundle = write(&folder.path().join("b"), &files, &[]);
    assert_eq!(eos_ids(&own(&bundle)).unwrap(), [7, 8, 9]);
}

#[test]
fn a_template_file_takes_precedence() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("tokenizer_config.json", "{\"chat_template\": \"old\", \"bos_token\": \"<s>\"}"),
        ("chat_template.jinja", "new {{ bos_token }}"),
    ];
    let bundle = write(&folder.path().join("b"), &files, &[]);
    assert_eq!(
        ChatTemplate::from_checkpoint(&own(&bundle)).unwrap().render(&Chat::default()).unwrap(),
        "new <s>"
    );
}
