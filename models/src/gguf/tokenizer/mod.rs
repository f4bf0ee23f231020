//! tokenizer.json and tokenizer_config.json, as Hugging Face has them.

mod byte_level;
mod sentence_piece;

use serde_json::{Map, Value, json};

use super::{
    SmallFiles,
    keys::{Keys, object},
    special::id,
};
use crate::error::Error;

/// Types of tokens (`llama_token_type` of llama.h).
const NORMAL: u64 = 1;
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;
const UNUSED: u64 = 5;
const BYTE: u64 = 6;

/// The key of the tokens, by id.
const TOKENS: &str = "tokenizer.ggml.tokens";

/// A token of the vocabulary.
#[derive(Debug, Clone, Copy)]
struct Token<'m> {
    text: &'m str,
    ty: u64,
}

/// Why there is no tokenizer.json, or an error of the metadata.
enum Refused {
    /// Nothing says what the tokenizer computes.
    Unknown(String),
    Error(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
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

/// Returns the tokens that are found in texts as they are: special ones, and those that users defined.
fn added_tokens(
    tokens: &[Token<'_>],
    text: impl Fn(&str) -> String,
    strips: impl Fn(&Token<'_>) -> bool,
) -> Value {
    let added = tokens.iter().enumerate().filter(|(_, token)| [CONTROL, USER_DEFINED].contains(&token.ty));
    let added = added.map(|(id, token)| {
        json!({
            "id": id, "content": text(token.text), "single_word": false, "lstrip": false,
            "rstrip": strips(token), "normalized": false, "special": token.ty == CONTROL,
        })
    });
    added.collect()
}

/// Returns what adds the first and the last token of a text. `begins` is whether there is a first one by default.
fn post_processor(keys: &Keys<'_>, tokens: &[Token<'_>], begins: bool) -> Result<Value, Error> {
    let mut single = Vec::new();
    let mut special = Map::new();
    let mut both = [None, None];
    for (place, (name, default)) in both.iter_mut().zip([("bos", begins), ("eos", false)]) {
        let token = id(keys, name)?.and_then(|id| Some((id, tokens.get(id as usize)?.text)));
        if keys.json.flag(&format!("tokenizer.ggml.add_{name}_token"), default)? {
            *place = token;
        }
    }
    let [first, last] = both;
    let mut add = |(id, text): (u32, &str)| {
        special.insert(text.into(), json!({ "id": text, "ids": [id], "tokens": [text] }));
        json!({ "SpecialToken": { "id": text, "type_id": 0 } })
    };
    single.extend(first.map(&mut add));
    single.push(json!({ "Sequence": { "id": "A", "type_id": 0 } }));
    single.extend(last.map(&mut add));
    let pair = [
        single.clone(),
        first.map(&mut add).into_iter().collect(),
        vec![json!({ "Sequence": { "id": "B", "type_id": 1 } })],
        last.map(&mut add).into_iter().collect(),
    ];
    Ok(json!({
        "type": "TemplateProcessing", "single": single, "pair": pair.concat(), "special_tokens": special,
    }))
}

/// Returns the vocabulary: ids by text. Ids without a token are left out.
fn vocabulary(tokens: &[Token<'_>], text: impl Fn(&Token<'_>) -> String) -> Map<String, Value> {
    let used = tokens
        .iter()
        .enumerate()
        .filter(|(id, token)| token.ty != UNUSED || token.text != format!("[PAD{id}]"));
    used.map(|(id, token)| (text(token), id.into())).collect()
}
