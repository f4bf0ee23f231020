//! Which files of a repository a build reads.

use mlxcel_artifacts::{CONFIG_FILE, INDEX_FILE, SINGLE_FILE, SMALL_FILES};
use mlxcel_models::HF_QUANT_CONFIG_FILE;

use crate::hub::name::is_file_word;

/// Files that say how an encoder treats texts.
const ENCODER_FILES: [&str; 3] =
    ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"];

/// The folders of an encoder's modules have a number, as in `1_Pooling/config.json`.
fn is_module(name: &str) -> bool {
    let folder = name.strip_suffix(CONFIG_FILE).and_then(|folder| folder.strip_suffix('/'));
    let number = folder.and_then(|folder| folder.split_once('_'));
    number.is_some_and(|(number, kind)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && is_file_word(kind)
    })
}

/// Returns whether a checkpoint's small file is read.
pub(super) fn is_small(name: &str) -> bool {
    [CONFIG_FILE, HF_QUANT_CONFIG_FILE].contains(&name)
        || SMALL_FILES.contains(&name)
        || ENCODER_FILES.contains(&name)
        || is_module(name)
}

/// The file that leads to a checkpoint's weights: as in transformers, a single file takes precedence over an index.
pub(super) fn first_weights(has: impl Fn(&str) -> bool) -> Option<&'static str> {
    [SINGLE_FILE, INDEX_FILE].into_iter().find(|name| has(name))
}

/// Returns whether a file is `wanted`, or another part of the same split GGUF file.
pub(super) fn is_part_of(name: &str, wanted: &str) -> bool {
    fn stem(name: &str) -> Option<(&str, &str)> {
        let (start, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (start, number) = start.rsplit_once('-')?;
        let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(number) && is_number(count)).then_some((start, count))
    }
    name == wanted || stem(name).is_some_and(|stem_of_name| stem(wanted) == Some(stem_of_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_use_are_left() {
        for name in [
            "config.json",
            "hf_quant_config.json",
            "tokenizer.json",
            "chat_template.jinja",
            "modules.json",
            "1_Pooling/config.json",
        ] {
            assert!(is_small(name), "{name}");
        }
        for name in [
            "README.md",
            "pytorch_model.bin",
            "onnx/config.json",
            "onnx/model.onnx",
            "x_y/config.json",
            "model.pth",
            "1_../../config.json",
            "1_.x/config.json",
            "_x/config.json",
            "/config.json",
            "vocab.json",
        ] {
            assert!(!is_small(name), "{name}");
        }
    }

    #[test]
    fn a_single_file_takes_precedence() {
        let first = |names: &[&'static str]| first_weights(|name| names.contains(&name));
        assert_eq!(first(&["model.safetensors.index.json", "model.safetensors"]), Some("model.safetensors"));
        assert_eq!(first(&["model.safetensors.index.json"]), Some("model.safetensors.index.json"));
        assert_eq!(first(&["adapter_model.safetensors", "model.bin"]), None);
    }

    #[test]
    fn parts_belong_together() {
        let wanted = "q/m-00002-of-00003.gguf";
        assert!(is_part_of("q/m-00001-of-00003.gguf", wanted) && is_part_of(wanted, wanted));
        for other in
            ["m-00001-of-00003.gguf", "q/m-00001-of-00004.gguf", "q/n-00001-of-00003.gguf", "q/m.gguf"]
        {
            assert!(!is_part_of(other, wanted), "{other}");
        }
        assert!(is_part_of("m.gguf", "m.gguf") && !is_part_of("n.gguf", "m.gguf"));
    }
}
