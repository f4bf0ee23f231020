//! The tokenizer of a checkpoint.

use std::{collections::HashMap, ops::Range, sync::Arc};

use mlxcel_artifacts::Bundle;
use serde::Deserialize;
use tokenizers::{PostProcessor as _, TruncationDirection};

use crate::{checkpoint::CheckpointFiles, error::Error};

/// The file of the tokenizer, in a bundle and in a checkpoint's folder.
const FILE: &str = "tokenizer.json";

/// A checkpoint's tokenizer. Clones share one.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
}

impl Tokenizer {
    /// Reads the tokenizer that a bundle carries.
    ///
    /// # Errors
    /// The bundle carries none, or its tokenizer.json cannot be parsed.
    pub fn from_bundle(bundle: &Bundle) -> Result<Self, Error> {
        Self::from_checkpoint(&CheckpointFiles::new(bundle, None))
    }

    /// Reads the tokenizer of a checkpoint.
    ///
    /// # Errors
    /// The checkpoint has none, or its tokenizer.json cannot be parsed.
    pub fn from_checkpoint(files: &CheckpointFiles<'_>) -> Result<Self, Error> {
        let file = files.find(FILE)?.ok_or_else(|| Error::NoTokenizer(files.locations()))?;
        Self::parse(&file.bytes, &file.display_name)
    }

    /// Parses the text of a tokenizer.json.
    ///
    /// # Errors
    /// The text cannot be parsed.
    pub fn from_json(text: &[u8]) -> Result<Self, Error> {
        Self::parse(text, FILE)
    }

    fn parse(text: &[u8], file: &str) -> Result<Self, Error> {
        let fail = |source| Error::BadTokenizer { file: file.into(), source };
        let mut inner = tokenizers::Tokenizer::from_bytes(text).map_err(fail)?;
        // Some checkpoints have settings left over from training. A prompt is never truncated or padded.
        inner.with_truncation(None).map_err(fail)?;
        inner.with_padding(None);
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Encodes a text. `with_special` adds the checkpoint's special tokens, usually a BOS.
    ///
    /// A chat template writes the special tokens itself.
    ///
    /// # Errors
    /// The tokenizer refuses the text.
    pub fn encode(&self, text: &str, with_special: bool) -> Result<Vec<u32>, Error> {
        let encoding = self.inner.encode_fast(text, with_special);
        let encoding = encoding.map_err(|source| Error::Tokenizer { doing: "encode the prompt", source })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Encodes a text without adding special tokens. Returns each token with the bytes of the text that it stands for.
    ///
    /// # Errors
    /// The tokenizer refuses the text.
    pub(super) fn encode_with_offsets(&self, text: &str) -> Result<Vec<(u32, Range<usize>)>, Error> {
        let encoding = self.inner.encode(text, false);
        let encoding = encoding.map_err(|source| Error::Tokenizer { doing: "encode the prompt", source })?;
        let offsets = encoding.get_offsets().iter().map(|&(start, end)| start..end);
        Ok(encoding.get_ids().iter().copied().zip(offsets).collect())
    }

    /// Returns the texts of the special tokens, longest first.
    pub(super) fn special_texts(&self) -> Vec<String> {
        let added = self.added_tokens().into_values();
        let mut texts: Vec<_> = added.filter_map(|(text, is_special)| is_special.then_some(text)).collect();
        texts.sort_unstable_by_key(|text| (std::cmp::Reverse(text.len()), text.clone()));
        texts
    }

    /// Returns the decoder, as tokenizer.json has it. `null` if there is none.
    pub(super) fn decoder(&self) -> serde_json::Value {
        serde_json::to_value(self.inner.get_decoder()).unwrap_or_default()
    }

    /// Returns the text of each added token, and whether it is special.
    pub(super) fn added_tokens(&self) -> HashMap<u32, (String, bool)> {
        let added = self.inner.get_added_tokens_decoder().into_iter();
        added.map(|(id, token)| (id, (token.content, token.special))).collect()
    }

    /// Returns the special token with this text.
    #[must_use]
    pub fn special_token(&self, text: &str) -> Option<u32> {
        let id = self.inner.token_to_id(text)?;
        self.inner.get_added_vocabulary().is_special_token(text).then_some(id)
    }

    /// Returns the symbols of a token, which a decoder turns into text.
    pub(super) fn symbols(&self, token: u32) -> Option<String> {
        self.inner.id_to_token(token)
    }

    /// Encodes a text with special tokens into at most `limit` tokens. Also returns whether the text was truncated.
    ///
    /// # Errors
    /// The tokenizer refuses the text.
    pub fn encode_within(&self, text: &str, limit: usize) -> Result<(Vec<u32>, bool), Error> {
        let fail = |source| Error::Tokenizer { doing: "encode the text", source };
        let mut encoding = self.inner.encode_fast(text, false).map_err(fail)?;
        let special = self.inner.get_post_processor().map_or(0, |processor| processor.added_tokens(false));
        let room = limit.saturating_sub(special);
        let is_truncated = encoding.len() > room;
        encoding.truncate(room, 0, TruncationDirection::Right);
        let encoding = self.inner.post_process(encoding, None, true).map_err(fail)?;
        Ok((encoding.get_ids().to_vec(), is_truncated))
    }

    /// Decodes tokens, without special ones. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// The tokenizer refuses the tokens.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        self.inner
            .decode(tokens, true)
            .map_err(|source| Error::Tokenizer { doing: "decode the answer", source })
    }

    /// Returns the text of one token, special ones included. Bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn token_text(&self, token: u32) -> String {
        self.inner.decode(&[token], false).unwrap_or_default()
    }
}

/// Reads the token ids that end a text from a checkpoint's config.json and generation_config.json.
///
/// # Errors
/// One of the files cannot be parsed.
pub fn eos_ids(files: &CheckpointFiles<'_>) -> Result<Vec<u32>, Error> {
    let mut ids = Vec::new();
    for name in ["config.json", "generation_config.json"] {
        let Some(file) = files.find(name)? else { continue };
        ids.extend(parse_eos(&file.display_name, &file.bytes)?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Parses `eos_token_id`, one id or a list.
fn parse_eos(file: &str, text: &[u8]) -> Result<Vec<u32>, Error> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        eos_token_id: Option<Ids>,
    }
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "eos_token_id: expected a token id or a list of them")]
    enum Ids {
        One(u32),
        Many(Vec<u32>),
    }
    let config: Config =
        serde_json::from_slice(text).map_err(|source| Error::Json { file: file.into(), source })?;
    Ok(match config.eos_token_id {
        None => vec![],
        Some(Ids::One(id)) => vec![id],
        Some(Ids::Many(ids)) => ids,
    })
}

#[cfg(test)]
pub(crate) mod test_tokenizers {
    use super::Tokenizer;

    /// The id of `</s>` in [`byte_level`].
    #[cfg_attr(not(feature = "grammar"), expect(dead_code))]
    pub(crate) const END: u32 = 257;

    /// Makes a byte-level BPE without merges: one token for each byte, in GPT-2's alphabet.
    pub(crate) fn byte_level() -> Tokenizer {
        let mut vocab = serde_json::Map::new();
        let (mut id, mut shifted) = (0u32, 0u32);
        for byte in 0..=255u8 {
            let plain = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
            let symbol = if plain {
                char::from(byte)
            } else {
                shifted += 1;
                char::from_u32(255 + shifted).unwrap()
            };
            vocab.insert(symbol.to_string(), id.into());
            id += 1;
        }
        let special = |id: u32, content: &str| {
            serde_json::json!({"id": id, "content": content, "special": true, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false})
        };
        from_json(&serde_json::json!({
            "version": "1.0",
            "added_tokens": [special(256, "<s>"), special(257, "</s>")],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
            },
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
            "padding": {"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": null,
                "pad_id": 0, "pad_type_id": 0, "pad_token": "!"},
            "model": {"type": "BPE", "vocab": vocab, "merges": []},
        }))
    }

    /// Makes a tokenizer like Llama 2's: `▁` for a space, bytes as `<0xE2>`, and no space at the start of a text.
    pub(crate) fn byte_fallback() -> Tokenizer {
        let mut vocab = serde_json::Map::new();
        for byte in 0..=255u32 {
            vocab.insert(format!("<0x{byte:02X}>"), byte.into());
        }
        for (id, word) in ["▁Paris", "▁is", "é", "▁"].into_iter().enumerate() {
            vocab.insert(word.into(), (256 + id).into());
        }
        from_json(&serde_json::json!({
            "version": "1.0",
            "added_tokens": [],
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ]},
            "model": {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": true},
        }))
    }

    pub(crate) fn from_json(json: &serde_json::Value) -> Tokenizer {
        Tokenizer::from_json(json.to_string().as_bytes()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::{test_tokenizers::byte_level, *};

    #[test]
    fn a_prompt_gets_special_tokens_and_is_neither_truncated_nor_padded() {
        let tokenizer = byte_level();
        let plain = tokenizer.encode("hello", false).unwrap();
        assert_eq!(plain.len(), 5);
        let special = tokenizer.encode("hello", true).unwrap();
        assert_eq!((special[0], &special[1..]), (256, plain.as_slice()));
        assert_eq!(tokenizer.encode("", true).unwrap(), [256]);
        assert!(tokenizer.encode("", false).unwrap().is_empty());
        assert_eq!(tokenizer.encode("</s>", false).unwrap(), [257]);
    }

    #[test]
    fn special_tokens_and_unknown_ids_have_no_text() {
        let mut tokens = byte_level().encode("hi", false).unwrap();
        tokens.insert(1, 257);
        tokens.push(100_000);
        assert_eq!(byte_level().decode(&tokens).unwrap(), "hi");
    }

    #[test]
    fn eos() {
        let parse = |text: &str| parse_eos("config.json", text.as_bytes());
        assert_eq!(parse(r#"{"eos_token_id": 2}"#).unwrap(), [2]);
        assert_eq!(parse(r#"{"eos_token_id": [128001, 128009]}"#).unwrap(), [128_001, 128_009]);
        assert!(parse(r#"{"eos_token_id": null}"#).unwrap().is_empty());
        assert!(parse("{}").unwrap().is_empty());
        let error = parse(r#"{"eos_token_id": "</s>"}"#).unwrap_err();
        assert_eq!(
            mlxcel_artifacts::report(&error),
            "error: cannot understand config.json: eos_token_id: expected a token id or a list of them at line 1 \
             column 24\nhint: take the checkpoint's own file"
        );
    }

    #[test]
    fn json_without_a_tokenizer_is_refused() {
        let error = Tokenizer::from_json(b"{}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot understand tokenizer.json\n\
             hint: take the checkpoint's own tokenizer.json, or give token ids with --tokens"
        );
    }
}
