//! SentencePiece's BPE: `tokenizer.ggml.model` llama.
//!
//! A file has scores in place of merges: a token is merged before all tokens with lower scores. The merges are all ways to
//! split a token in two, in the order that Hugging Face's converter gives them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::parts::{
    BYTE, CONTROL, NORMAL, Refused, Token, USER_DEFINED, added_tokens, post_processor, vocabulary,
};
use crate::gguf::{keys::Keys, special::id};

/// What stands for a space.
const SPACE: &str = "\u{2581}";

/// The key of the scores, by id.
const SCORES: &str = "tokenizer.ggml.scores";

/// The most bytes of a token: every way to split it is looked up.
const MAX_BYTES: usize = 512;

/// Returns the tokenizer.json.
pub(super) fn tokenizer(keys: &Keys<'_>, tokens: &[Token<'_>]) -> Result<Value, Refused> {
    let json = &keys.json;
    if json.has("tokenizer.ggml.precompiled_charsmap") {
        return Err(Refused::Unknown("`tokenizer.ggml.precompiled_charsmap` is there, expected none".into()));
    }
    let scores = json.list(SCORES, tokens.len(), "scores", Value::as_f64)?;
    let merges = merges(tokens, &scores)?;
    let prefixed = json.flag("tokenizer.ggml.add_space_prefix", true)?;
    let replace = json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
    let normalizer = match prefixed {
        true => json!({
            "type": "Sequence",
            "normalizers": [{ "type": "Prepend", "prepend": SPACE }, replace],
        }),
        false => replace,
    };
    let mut decoders = vec![
        json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if prefixed {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    let unknown = id(keys, "unknown")?.and_then(|id| tokens.get(id as usize)).map(|token| token.text);
    // Phi-3's special tokens take the white space after them.
    let strips = |token: &Token<'_>| {
        let is_plain = ["<unk>", "<s>", "<|endoftext|>"].contains(&token.text);
        keys.file.architecture == "phi3" && !is_plain && (token.ty == CONTROL || token.text == "</s>")
    };
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added_tokens(tokens, spaced, strips),
        "normalizer": normalizer,
        "pre_tokenizer": null,
        "post_processor": post_processor(keys, tokens, true)?,
        "decoder": { "type": "Sequence", "decoders": decoders },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": vocabulary(tokens, text),
            "merges": merges,
        },
    }))
}

/// Returns a text with spaces as tokens have them: the converter writes plain ones into tokens that users defined.
fn spaced(text: &str) -> String {
    text.replace(' ', SPACE)
}

fn text(token: &Token<'_>) -> String {
    if token.ty == USER_DEFINED { spaced(token.text) } else { token.text.to_owned() }
}

/// Returns the pairs that are merged, first to last.
fn merges(tokens: &[Token<'_>], scores: &[f64]) -> Result<Vec<[String; 2]>, Refused> {
    let normal =
        || tokens.iter().zip(scores).filter(|(token, _)| token.ty == NORMAL).map(|(_, score)| *score);
    if let (Some(first), true) = (normal().next(), normal().count() > 1)
        && normal().all(|score| score.to_bits() == first.to_bits())
    {
        return Err(Refused::Unknown(format!("all scores of `{SCORES}` are {first:?}, expected an order")));
    }
    let texts: Vec<String> = tokens.iter().map(text).collect();
    if let Some(long) = texts.iter().map(String::len).find(|&bytes| bytes > MAX_BYTES) {
        return Err(Refused::Unknown(format!("a token has {long} bytes, expected at most {MAX_BYTES}")));
    }
    let is_mergeable = |token: &Token<'_>| ![CONTROL, BYTE].contains(&token.ty);
    let ids = texts.iter().enumerate().filter(|(id, _)| is_mergeable(&tokens[*id]));
    let ids: HashMap<&str, usize> = ids.map(|(id, text)| (text.as_str(), id)).collect();
    let mut merged: Vec<usize> = ids.values().copied().collect();
    merged.sort_unstable();
    // SentencePiece numbers tokens in the order of their scores. What users defined has scores that say nothing.
    if !normal().is_sorted_by(|one, other| one >= other) {
        merged.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
    }
    let mut merges = Vec::new();
    for id in merged {
        let whole = texts[id].as_str();
        let splits = whole.char_indices().skip(1).map(|(at, _)| whole.split_at(at));
        let mut pairs: Vec<_> =
            splits.filter_map(|(one, other)| Some((ids.get(one)?, ids.get(other)?, one, other))).collect();
        pairs.sort_unstable();
        merges.extend(pairs.into_iter().map(|(_, _, one, other)| [one.to_owned(), other.to_owned()]));
    }
    Ok(merges)
}
