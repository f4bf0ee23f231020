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
    assert!(all.len() >= 19, "{:?}", all.keys());
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
fn files_without_a_pre_tokenizer_split_as_all_models_of_their_architecture_do() {
    for (architecture, kind) in
        [("gpt2", "gpt-2"), ("gptneox", "olmo"), ("qwen2", "qwen2"), ("command-r", "command-r")]
    {
        let recorded = recorded().remove(kind).unwrap().metadata;
        let named = small_files(recorded.clone()).texts;
        for pre in [Value::Null, "default".into()] {
            let mut metadata = recorded.clone();
            metadata.insert("general.architecture".into(), architecture.into());
            metadata.remove("tokenizer.ggml.pre");
            metadata.extend((!pre.is_null()).then(|| ("tokenizer.ggml.pre".to_owned(), pre.clone())));
            let SmallFiles { texts, warnings } = small_files(metadata);
            assert_eq!(texts["tokenizer.json"], named["tokenizer.json"], "{architecture}");
            let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
            assert!(
                warning.contains(&format!("as {kind} does, which published {architecture} models have")),
                "{warning}"
            );
        }
    }
}

#[test]
fn a_whole_tokenizer_is_used_as_it_is() {
    let mut metadata = recorded().remove("llama").unwrap().metadata;
    metadata.insert("tokenizer.huggingface.json".into(), r#"{"version":"1.0"}"#.into());
    assert_eq!(small_files(metadata.clone()).texts["tokenizer.json"], "{\"version\":\"1.0\"}\n");
    metadata.insert("tokenizer.huggingface.json".into(), "{".into());
    let error = GgufModel::new(metadata, [], BTreeMap::new()).unwrap().small_files().unwrap_err();
    assert!(error.to_string().starts_with("`tokenizer.huggingface.json` is "), "{error}");
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
            warning(json!({ "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "exaone4" })),
            warning(json!({ "tokenizer.ggml.remove_extra_whitespaces": true })),
            warning(json!({ "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.add_space_prefix": true })),
            warning(json!({ "tokenizer.ggml.normalizer.lowercase": true })),
            warning(json!({ "tokenizer.ggml.scores": vec![-1000.0; scores] })),
            warning(json!({ "tokenizer.ggml.precompiled_charsmap": [1] })),
        ]
        .join("\n"),
        @r#"
    the bundle has no tokenizer, because `tokenizer.ggml.model` is "bert", expected gpt2 or llama: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.pre` is "default", expected one of gpt-2, phi-2, olmo, starcoder, smollm, refact, command-r, llama-bpe, llama3, llama-v3, smaug-bpe, dbrx, glm4, chatglm-bpe, qwen2, deepseek-r1-qwen, stablelm2, seed-coder, gpt-4o, tekken, falcon, deepseek-llm, deepseek-coder, deepseek-v3: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.pre` is "exaone4", expected one of gpt-2, phi-2, olmo, starcoder, smollm, refact, command-r, llama-bpe, llama3, llama-v3, smaug-bpe, dbrx, glm4, chatglm-bpe, qwen2, deepseek-r1-qwen, stablelm2, seed-coder, gpt-4o, tekken, falcon, deepseek-llm, deepseek-coder, deepseek-v3: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.remove_extra_whitespaces` is there, which may change what tokens are: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.add_space_prefix` is there, which may change what tokens are: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.normalizer.lowercase` is there, which may change what tokens are: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because all scores of `tokenizer.ggml.scores` are -1000.0, expected an order: give token ids, or a folder with the original tokenizer.json
    the bundle has no tokenizer, because `tokenizer.ggml.precompiled_charsmap` is there, expected none: give token ids, or a folder with the original tokenizer.json
    "#
    );
}
