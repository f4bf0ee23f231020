//! Special tokens: ids of the first and the last token of a text.

use serde_json::{Map, Value};

use super::keys::Keys;
use crate::error::Error;

/// Texts of tokens that end a turn, where no key names them. Files made by Hugging Face's tokenizers list them in
/// generation_config.json, which llama.cpp's converter does not read.
const ENDS: [&str; 12] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    "<EOT>",
    "<|user|>",
];

/// The type of control tokens.
pub(super) const CONTROL: u64 = 3;

/// SentencePiece's ids, which llama.cpp takes where a file has no key.
const OF_SENTENCE_PIECE: [(&str, u32); 3] = [("unknown", 0), ("bos", 1), ("eos", 2)];

/// The key of the tokens, by id.
pub(super) const TOKENS: &str = "tokenizer.ggml.tokens";

/// Returns whether the tokenizer is SentencePiece's.
pub(super) fn is_sentence_piece(keys: &Keys<'_>) -> bool {
    keys.json.value("tokenizer.ggml.model").and_then(Value::as_str) == Some("llama")
}

/// Returns the id at a key of the tokenizer.
pub(super) fn id(keys: &Keys<'_>, name: &str) -> Result<Option<u32>, Error> {
    let json = &keys.json;
    let key = format!("tokenizer.ggml.{name}_token_id");
    let count = json.value(TOKENS).and_then(Value::as_array).map(Vec::len);
    let is_one = |id: &u32| count.is_none_or(|count| (*id as usize) < count);
    let default = OF_SENTENCE_PIECE.iter().find(|(known, _)| *known == name && is_sentence_piece(keys));
    let default = default.map(|(_, id)| *id).filter(is_one);
    match json.token(&key, default)? {
        // Nothing pads, and converters write numbers that are no ids.
        Some(id) if name != "padding" && !is_one(&id) => {
            Err(json.invalid(&key, format!("a token id below {}", count.unwrap_or_default())))
        }
        found => Ok(found),
    }
}

/// Adds the ids of the first and the last tokens.
pub(super) fn add_ids(keys: &Keys<'_>, config: &mut Map<String, Value>) -> Result<(), Error> {
    config.insert("bos_token_id".into(), id(keys, "bos")?.into());
    let mut ends = Vec::new();
    for name in ["eos", "eot", "eom"] {
        ends.extend(id(keys, name)?);
    }
    let list = |key| keys.json.value(key).and_then(Value::as_array);
    let (tokens, types) = (list(TOKENS), list("tokenizer.ggml.token_type"));
    let both = tokens.into_iter().flatten().zip(types.into_iter().flatten());
    for (index, (token, ty)) in both.enumerate() {
        let is_end = token.as_str().is_some_and(|text| ENDS.contains(&text));
        if is_end && ty.as_u64() == Some(CONTROL) {
            ends.extend(u32::try_from(index));
        }
    }
    let text = |id: &u32| tokens.and_then(|tokens| tokens.get(*id as usize)).and_then(Value::as_str);
    // gpt-oss writes it after each message of an answer.
    if ["<|return|>", "<|call|>"].iter().all(|end| ends.iter().any(|id| text(id) == Some(end))) {
        ends.retain(|id| text(id) != Some("<|end|>"));
    }
    // GLM alone ends a turn by the name of who speaks next.
    if keys.file.architecture != "glm4" {
        ends.retain(|id| text(id) != Some("<|user|>"));
    }
    ends.sort_unstable();
    ends.dedup();
    config.insert("eos_token_id".into(), ends.into());
    Ok(())
}
