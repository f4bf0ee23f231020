//! Parts of a tokenizer.json that all kinds have.

use serde_json::{Map, Value, json};

use crate::{
    error::Error,
    gguf::{keys::Keys, special::id},
};

/// Types of tokens (`llama_token_type` of llama.h).
pub(super) const NORMAL: u64 = 1;
pub(super) const CONTROL: u64 = 3;
pub(super) const USER_DEFINED: u64 = 4;
pub(super) const UNUSED: u64 = 5;
pub(super) const BYTE: u64 = 6;

/// A token of the vocabulary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'m> {
    pub(super) text: &'m str,
    pub(super) ty: u64,
}

/// Why there is no tokenizer.json, or an error of the metadata.
pub(super) enum Refused {
    /// Nothing says what the tokenizer computes.
    Unknown(String),
    Error(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Returns the tokens that are found in texts as they are: special ones, and those that users defined.
pub(super) fn added_tokens(
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
pub(super) fn post_processor(keys: &Keys<'_>, tokens: &[Token<'_>], begins: bool) -> Result<Value, Error> {
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
pub(super) fn vocabulary(tokens: &[Token<'_>], text: impl Fn(&Token<'_>) -> String) -> Map<String, Value> {
    let used = tokens
        .iter()
        .enumerate()
        .filter(|(id, token)| token.ty != UNUSED || token.text != format!("[PAD{id}]"));
    used.map(|(id, token)| (text(token), id.into())).collect()
}
