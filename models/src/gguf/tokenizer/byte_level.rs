//! BPE over bytes: `tokenizer.ggml.model` gpt2.

use serde_json::{Value, json};

use super::parts::{Refused, Token, added_tokens, post_processor, vocabulary};
use crate::gguf::keys::Keys;

/// How texts are split into words before merging, by `tokenizer.ggml.pre`.
struct Splitting {
    names: &'static [&'static str],
    /// Whether texts are normalized to Unicode's form C.
    normalizes: bool,
    splits: Splits,
    /// Whether a word that is a token is not split, whatever the merges say.
    keeps_words: bool,
    /// Whether a text begins with a token if no key says so.
    begins: bool,
}

enum Splits {
    /// As GPT-2 does.
    Gpt2,
    /// As GPT-2 does, after digits were separated.
    Digits,
    /// By this regular expression.
    Regex(&'static str),
}

/// GPT-4's words, with digits in groups of up to three (`cl100k_base` of tiktoken).
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same with single digits.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// GPT-4o's words, which end where capital letters begin (`o200k_base` of tiktoken).
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Mistral's Tekken: the same without contractions, and with single digits.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const fn splitting(names: &'static [&'static str], splits: Splits) -> Splitting {
    Splitting { names, normalizes: false, splits, keeps_words: false, begins: false }
}

const SPLITTINGS: [Splitting; 9] = [
    splitting(&["gpt-2", "phi-2"], Splits::Gpt2),
    Splitting { normalizes: true, ..splitting(&["olmo"], Splits::Gpt2) },
    splitting(&["starcoder", "smollm", "refact"], Splits::Digits),
    Splitting { normalizes: true, ..splitting(&["command-r"], Splits::Digits) },
    Splitting {
        keeps_words: true,
        begins: true,
        ..splitting(&["llama-bpe", "llama3", "llama-v3"], Splits::Regex(CL100K))
    },
    splitting(&["dbrx"], Splits::Regex(CL100K)),
    Splitting { normalizes: true, ..splitting(&["qwen2", "deepseek-r1-qwen"], Splits::Regex(QWEN2)) },
    Splitting { keeps_words: true, ..splitting(&["gpt-4o"], Splits::Regex(O200K)) },
    Splitting { keeps_words: true, begins: true, ..splitting(&["tekken"], Splits::Regex(TEKKEN)) },
];

impl Splitting {
    fn find(name: Option<&str>) -> Result<&'static Self, Refused> {
        let known =
            SPLITTINGS.iter().find(|splitting| name.is_some_and(|name| splitting.names.contains(&name)));
        known.ok_or_else(|| {
            let names: Vec<_> = SPLITTINGS.iter().flat_map(|splitting| splitting.names).copied().collect();
            let found = name.unwrap_or("missing");
            Refused::Unknown(format!("`tokenizer.ggml.pre` is {found}, expected one of {}", names.join(", ")))
        })
    }

    fn pre_tokenizer(&self) -> Value {
        let bytes = |use_regex: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex });
        match self.splits {
            Splits::Gpt2 => bytes(true),
            Splits::Digits => json!({
                "type": "Sequence",
                "pretokenizers": [{ "type": "Digits", "individual_digits": true }, bytes(true)],
            }),
            Splits::Regex(regex) => json!({
                "type": "Sequence",
                "pretokenizers": [
                    { "type": "Split", "pattern": { "Regex": regex }, "behavior": "Isolated", "invert": false },
                    bytes(false),
                ],
            }),
        }
    }
}

/// Returns the tokenizer.json.
pub(super) fn tokenizer(keys: &Keys<'_>, tokens: &[Token<'_>]) -> Result<Value, Refused> {
    const MERGES: &str = "tokenizer.ggml.merges";
    let json = &keys.json;
    let splitting = Splitting::find(json.text("tokenizer.ggml.pre")?)?;
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
