//! tokenizer.json and tokenizer_config.json, as Hugging Face has them.

mod byte_level;
mod parts;
mod sentence_piece;
mod splitting;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::parts::{NORMAL, Refused, Token};
use super::{
    keys::{Keys, object},
    special::{TOKENS, id, is_sentence_piece},
};
use crate::error::{Error, displayed};

/// Small files of a checkpoint, by name, with warnings for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmallFiles {
    /// Texts by name.
    pub texts: BTreeMap<&'static str, String>,
    /// What is left out or assumed, and why.
    pub warnings: Vec<String>,
}

/// Returns the files of the tokenizer. If it is of an unknown kind, a warning says so.
pub(super) fn small_files(keys: &Keys<'_>) -> Result<SmallFiles, Error> {
    let mut files = SmallFiles::default();
    let Some(tokens) = tokens(keys)? else {
        files
            .warnings
            .push("the file has no tokenizer: give token ids, or a folder with tokenizer.json".into());
        return Ok(files);
    };
    let unknown = unknown_key(keys);
    let made = match (keys.json.text("tokenizer.ggml.model")?, unknown) {
        _ if keys.json.has(WHOLE) => Ok(whole(keys)?),
        (Some("gpt2" | "llama"), Some(refused)) => Err(refused),
        (Some("gpt2"), None) => byte_level::tokenizer(keys, &tokens, &mut files.warnings),
        (Some("llama"), None) => sentence_piece::tokenizer(keys, &tokens),
        (other, _) => {
            let found = other.map_or_else(|| "missing".into(), |other| displayed(&other.into()));
            Err(Refused::Unknown(format!("`tokenizer.ggml.model` is {found}, expected gpt2 or llama")))
        }
    };
    match made {
        Ok(tokenizer) => _ = files.texts.insert("tokenizer.json", format!("{tokenizer}\n")),
        Err(Refused::Error(error)) => return Err(error),
        Err(Refused::Unknown(problem)) => files.warnings.push(format!(
            "the bundle has no tokenizer, because {problem}: give token ids, or a folder with the original \
             tokenizer.json"
        )),
    }
    let config = Value::Object(config(keys, &tokens)?);
    files.texts.insert("tokenizer_config.json", format!("{config:#}\n"));
    Ok(files)
}

/// The key of a whole tokenizer.json.
const WHOLE: &str = "tokenizer.huggingface.json";

/// Returns the tokenizer.json that the file has.
fn whole(keys: &Keys<'_>) -> Result<Value, Error> {
    let object = keys.json.text(WHOLE)?.and_then(|text| serde_json::from_str(text).ok());
    object.filter(Value::is_object).ok_or_else(|| keys.json.invalid(WHOLE, "the text of a tokenizer.json"))
}

/// Keys that say how texts become tokens, and are read or need not be. Ids of tokens and chat templates are not among them.
const KNOWN: [&str; 9] = [
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    TOKENS,
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.token_type_count",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
];

/// Returns why a tokenizer is left out: a key that may change what it computes.
fn unknown_key(keys: &Keys<'_>) -> Option<Refused> {
    // Only SentencePiece's tokenizers have a space before the first word.
    let is_piece = is_sentence_piece(keys);
    let is_off = |value: &Value| value.as_bool() == Some(false);
    let is_known = |key: &str, value: &Value| match key {
        "tokenizer.ggml.add_space_prefix" => is_piece || is_off(value),
        "tokenizer.ggml.add_sep_token" | "tokenizer.ggml.remove_extra_whitespaces" => is_off(value),
        // It has a message of its own.
        "tokenizer.ggml.precompiled_charsmap" => true,
        _ => KNOWN.contains(&key) || key.ends_with("_token_id") || key.starts_with("tokenizer.chat_template"),
    };
    let mut found = keys.file.metadata.iter().filter(|(key, _)| key.starts_with("tokenizer."));
    let (key, _) = found.find(|(key, value)| !is_known(key, value))?;
    Some(Refused::Unknown(format!("`{key:.200}` is there, which may change what tokens are")))
}

/// Returns the tokens by id; `None` if there are none.
fn tokens<'m>(keys: &Keys<'m>) -> Result<Option<Vec<Token<'m>>>, Error> {
    let json = &keys.json;
    let Some(list) = json.value(TOKENS) else { return Ok(None) };
    let count = list.as_array().map_or(0, Vec::len);
    let texts = json.list(TOKENS, count, "texts", Value::as_str)?;
    let types = match json.value("tokenizer.ggml.token_type") {
        Some(_) => json.list("tokenizer.ggml.token_type", count, "types of tokens", Value::as_u64)?,
        None => vec![NORMAL; count],
    };
    Ok(Some(texts.into_iter().zip(types).map(|(text, ty)| Token { text, ty }).collect()))
}

/// Returns tokenizer_config.json: the texts of special tokens, and the chat template.
fn config(keys: &Keys<'_>, tokens: &[Token<'_>]) -> Result<Map<String, Value>, Error> {
    let mut config = object(json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": false,
    }));
    for (key, name) in
        [("bos", "bos_token"), ("eos", "eos_token"), ("unknown", "unk_token"), ("padding", "pad_token")]
    {
        let token = id(keys, key)?.and_then(|id| tokens.get(id as usize));
        if let Some(Token { text, .. }) = token {
            config.insert(name.into(), (*text).into());
        }
    }
    if let Some(template) = template(keys)? {
        config.insert("chat_template".into(), template);
    }
    Ok(config)
}

/// Returns the chat template, or several with names.
fn template(keys: &Keys<'_>) -> Result<Option<Value>, Error> {
    const TEMPLATE: &str = "tokenizer.chat_template";
    let json = &keys.json;
    let default = json.text(TEMPLATE)?;
    let names = json.value("tokenizer.chat_templates").and_then(Value::as_array);
    let mut named = Vec::new();
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        if let Some(template) = json.text(&format!("{TEMPLATE}.{name}"))? {
            named.push(json!({ "name": name, "template": template }));
        }
    }
    Ok(match default {
        Some(default) if named.is_empty() => Some(default.into()),
        Some(default) => {
            named.insert(0, json!({ "name": "default", "template": default }));
            Some(named.into())
        }
        None => None,
    })
}
