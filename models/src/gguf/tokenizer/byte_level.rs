//! BPE over bytes: `tokenizer.ggml.model` gpt2.

use serde_json::{Value, json};

use super::{
    parts::{Refused, Token, added_tokens, post_processor, vocabulary},
    splitting::Splitting,
};
use crate::gguf::keys::Keys;

/// Returns the tokenizer.json.
pub(super) fn tokenizer(
    keys: &Keys<'_>,
    tokens: &[Token<'_>],
    warnings: &mut Vec<String>,
) -> Result<Value, Refused> {
    const MERGES: &str = "tokenizer.ggml.merges";
    let json = &keys.json;
    let splitting = Splitting::find(json.text("tokenizer.ggml.pre")?, keys.file.architecture, warnings)?;
    if !json.has(MERGES) {
        return Err(Refused::Unknown(format!("`{MERGES}` is missing")));
    }
    let count = json.value(MERGES).and_then(Value::as_array).map_or(0, Vec::len);
    let pair = |value: &Value| value.as_str()?.split_once(' ').map(|(one, other)| json!([one, other]));
    let merges = json.list(MERGES, count, "pairs of tokens", pair)?;
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added_tokens(tokens, str::to_owned, |_| false),
        "normalizer": splitting.normalizes.then(|| json!({ "type": "NFC" })),
        "pre_tokenizer": splitting.pre_tokenizer(),
        "post_processor": post_processor(keys, tokens, splitting.begins)?,
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": splitting.keeps_words,
            "vocab": vocabulary(tokens, |token| token.text.to_owned()),
            "merges": merges,
        },
    }))
}
