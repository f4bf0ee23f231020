//! tokenizer.json and tokenizer_config.json, as Hugging Face has them.

mod byte_level;
mod parts;
mod sentence_piece;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::parts::{NORMAL, Refused, Token};
use super::{
    keys::{Keys, object},
    special::id,
};
use crate::error::Error;

/// The key of the tokens, by id.
const TOKENS: &str = "tokenizer.ggml.tokens";

/// Small files of a checkpoint, by name, with warnings for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmallFiles {
    /// Texts by name.
    pub texts: BTreeMap<&'static str, String>,
    /// What is left out, and why.
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
    let made = match keys.json.text("tokenizer.ggml.model")? {
        Some("gpt2") => byte_level::tokenizer(keys, &tokens),
        Some("llama") => sentence_piece::tokenizer(keys, &tokens),
        other => {
            let found = other.unwrap_or("missing");
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
