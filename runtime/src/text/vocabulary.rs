//! The bytes of every token.

use serde_json::Value;

use super::tokenizer::Tokenizer;
use crate::error::Error;

/// What a token adds to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenBytes {
    /// These bytes, which need not be UTF-8.
    Text(Vec<u8>),
    /// Nothing: it is a special token with this name.
    Special(String),
    /// Nothing: no token has this id.
    Unused,
}

/// How a decoder turns the symbols of a token into bytes.
#[derive(Debug, Default)]
struct Decoding {
    /// Symbols are those of GPT-2's alphabet, one for each byte.
    is_byte_level: bool,
    /// Tokens such as `<0x0A>` are bytes.
    has_byte_tokens: bool,
    /// Texts and what they are replaced by, such as `▁` by a space.
    replacements: Vec<(String, String)>,
}

impl Tokenizer {
    /// Returns what each of the `size` tokens of a model adds to a text.
    ///
    /// # Errors
    /// The decoder does not give a token the same text everywhere, as that of WordPiece.
    pub fn vocabulary(&self, size: usize) -> Result<Vec<TokenBytes>, Error> {
        let decoding = Decoding::of(&self.decoder())?;
        let added = self.added_tokens();
        let bytes = |id: u32| match (added.get(&id), self.symbols(id)) {
            (Some((text, true)), _) => TokenBytes::Special(text.clone()),
            (Some((text, false)), _) => TokenBytes::Text(text.clone().into_bytes()),
            (None, Some(symbols)) => TokenBytes::Text(decoding.bytes(&symbols)),
            (None, None) => TokenBytes::Unused,
        };
        Ok((0..).take(size).map(bytes).collect())
    }
}

impl Decoding {
    /// Reads a decoder as tokenizer.json has it.
    fn of(decoder: &Value) -> Result<Self, Error> {
        let mut decoding = Self::default();
        let mut is_known = false;
        let parts = decoder["decoders"].as_array().map_or(std::slice::from_ref(decoder), Vec::as_slice);
        for part in parts {
            let text = |name: &str| part[name].as_str().unwrap_or_default().to_owned();
            match part["type"].as_str().unwrap_or("none") {
                "ByteLevel" => decoding.is_byte_level = true,
                "ByteFallback" => decoding.has_byte_tokens = true,
                "Metaspace" => decoding.replacements.push((text("replacement"), " ".into())),
                "Replace" if part["pattern"]["String"].is_string() => {
                    let pattern = part["pattern"]["String"].as_str().unwrap_or_default().to_owned();
                    decoding.replacements.push((pattern, text("content")));
                }
                // Both are about the start and end of a text.
                "Fuse" | "Strip" => continue,
                other => return Err(Error::NoVocabulary { found: other.to_owned() }),
            }
            is_known = true;
        }
        if is_known { Ok(decoding) } else { Err(Error::NoVocabulary { found: "none".to_owned() }) }
    }

    fn bytes(&self, symbols: &str) -> Vec<u8> {
        if self.is_byte_level {
            // A token with other symbols stands for its own text.
            let bytes: Option<Vec<u8>> = symbols.chars().map(byte_of).collect();
            return bytes.unwrap_or_else(|| symbols.as_bytes().to_vec());
        }
        let byte = symbols.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
        if let (true, Some(byte)) =
            (self.has_byte_tokens, byte.and_then(|byte| u8::from_str_radix(byte, 16).ok()))
        {
            return vec![byte];
        }
        let replace = |text: String, (from, to): &(String, String)| text.replace(from, to);
        self.replacements.iter().fold(symbols.to_owned(), replace).into_bytes()
    }
}

/// Returns the byte of a symbol in GPT-2's alphabet.
///
/// Bytes that are printed in Latin-1 are their own symbols. The others, 0 to 0x20, 0x7f to 0xa0 and 0xad, have those from
/// U+0100 on, in order.
fn byte_of(symbol: char) -> Option<u8> {
    let byte = match u32::from(symbol) {
        plain @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => plain,
        low @ 0x100..=0x120 => low - 0x100,
        high @ 0x121..=0x142 => high - 0x121 + 0x7f,
        0x143 => 0xad,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::tokenizer::test_tokenizers::{byte_level, from_json};

    #[test]
    fn symbols_of_bytes() {
        let tokens = byte_level().vocabulary(260).unwrap();
        let expected = (0..=255).map(|byte| TokenBytes::Text(vec![byte]));
        assert!(tokens[..256].iter().cloned().eq(expected));
        let special = |name: &str| TokenBytes::Special(name.into());
        assert_eq!(tokens[256..], [special("<s>"), special("</s>"), TokenBytes::Unused, TokenBytes::Unused]);
        let decoding = Decoding { is_byte_level: true, ..Decoding::default() };
        assert_eq!(decoding.bytes("Ġa€"), "Ġa€".as_bytes());
        assert_eq!(decoding.bytes("ĠaâĤ¬"), " a€".as_bytes());
    }

    #[test]
    fn symbols_of_sentence_pieces() {
        let replace = json!({ "type": "Replace", "pattern": { "String": "▁" }, "content": " " });
        let decoders = json!([replace, { "type": "ByteFallback" }, { "type": "Fuse" }]);
        let decoding = Decoding::of(&json!({ "type": "Sequence", "decoders": decoders })).unwrap();
        assert_eq!(decoding.bytes("▁a▁b"), b" a b");
        assert_eq!(decoding.bytes("<0xE2>"), [0xe2]);
        assert_eq!(decoding.bytes("<0xZZ>"), b"<0xZZ>");
        let decoding = Decoding::of(&json!({ "type": "Metaspace", "replacement": "_" })).unwrap();
        assert_eq!((decoding.bytes("_a"), decoding.bytes("<0xE2>")), (b" a".to_vec(), b"<0xE2>".to_vec()));
    }

    #[test]
    fn a_decoder_whose_tokens_have_no_text_is_refused() {
        let tokenizer = |decoder: Value| {
            let model = json!({ "type": "WordLevel", "vocab": { "a": 0 }, "unk_token": "a" });
            from_json(&json!({ "version": "1.0", "added_tokens": [], "decoder": decoder, "model": model }))
        };
        let refused = |decoder| tokenizer(decoder).vocabulary(1).unwrap_err().to_string();
        let first = |text: String| text.lines().next().unwrap().to_owned();
        assert_eq!(
            first(refused(json!({ "type": "WordPiece", "prefix": "##", "cleanup": true }))),
            "the tokenizer's decoder is WordPiece, expected ByteLevel, ByteFallback, Metaspace or Replace"
        );
        assert!(refused(Value::Null).contains("decoder is none"));
        assert!(refused(json!({ "type": "Fuse" })).contains("decoder is none"));
    }
}
