//! Tokenizers that GGUF files describe: ids are those of the original tokenizers, which
//! `models/oracle/make_gguf_tokenizers.py` recorded.

use std::{collections::BTreeMap, fs};

use mlxcel_models::{GgufModel, SmallFiles};
use mlxcel_runtime::{ChatTemplate, Tokenizer};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::real::models;

#[derive(Deserialize)]
struct Recorded {
    metadata: Map<String, Value>,
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
    with_special: Vec<u32>,
    decoded: String,
}

fn recorded() -> BTreeMap<String, Recorded> {
    let folder = models().join("oracle/gguf_tokenizers");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
    };
    entries.map(read).collect()
}

fn small_files(metadata: Map<String, Value>) -> SmallFiles {
    GgufModel::new(metadata, [], BTreeMap::new()).unwrap().small_files().unwrap()
}

#[test]
fn ids_are_those_of_the_original_tokenizers() {
    let all = recorded();
    assert!(all.len() >= 11, "{:?}", all.keys());
    for (kind, Recorded { metadata, texts }) in all {
        let SmallFiles { texts: files, warnings } = small_files(metadata);
        assert!(warnings.is_empty(), "{kind}: {warnings:?}");
        let tokenizer = Tokenizer::from_json(files["tokenizer.json"].as_bytes()).unwrap();
        for Text { text, ids, with_special, decoded } in texts {
            assert_eq!(tokenizer.encode(&text, false).unwrap(), ids, "{kind}: {text:?}");
            assert_eq!(tokenizer.encode(&text, true).unwrap(), with_special, "{kind}: {text:?}");
            assert_eq!(tokenizer.decode(&ids).unwrap(), decoded, "{kind}: {text:?}");
        }
        let template = ChatTemplate::new(None, &files["tokenizer_config.json"]).unwrap().unwrap();
        assert!(template.source(false).contains("<|im_start|>assistant"), "{kind}");
    }
}

#[test]
fn tokenizers_of_other_kinds_are_left_out_by_name() {
    let warning = |changes: Value| {
        let mut metadata = recorded().remove("llama").unwrap().metadata;
        metadata.extend(changes.as_object().cloned().unwrap());
        let SmallFiles { texts, warnings } = small_files(metadata);
        assert!(!texts.contains_key("tokenizer.json"));
        warnings.join("\n")
    };
    let scores = recorded()["llama"].metadata["tokenizer.ggml.scores"].as_array().unwrap().len();
    insta::assert_snapshot!(
        [
            warning(json!({ "tokenizer.ggml.model": "bert" })),
            warning(json!({ "tokenizer.ggml.model": "gpt2" })),
            warning(json!({ "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "falcon" })),
            warning(json!({ "tokenizer.ggml.scores": vec![-1000.0; scores] })),
            warning(json!({ "tokenizer.ggml.precompiled_charsmap": [1] })),
        ]
        .join("\n"),
        @r"
    the bundle has no tokenizer, because `tokenizer.ggml.model` is bert, expected gpt2 or llama: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.pre` is default, expected one of gpt-2, phi-2, olmo, starcoder, smollm, refact, command-r, llama-bpe, llama3, llama-v3, dbrx, qwen2, deepseek-r1-qwen, gpt-4o, tekken: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.pre` is falcon, expected one of gpt-2, phi-2, olmo, starcoder, smollm, refact, command-r, llama-bpe, llama3, llama-v3, dbrx, qwen2, deepseek-r1-qwen, gpt-4o, tekken: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because all scores of `tokenizer.ggml.scores` are -1000.0, expected an order: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.precompiled_charsmap` is there, expected none: give token ids, or a folder with the original tokenizer.json
    "
    );
}
