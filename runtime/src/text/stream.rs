//! Text that grows token by token.

use std::collections::HashMap;

use super::{held::HeldText, tokenizer::Tokenizer};
use crate::error::Error;

impl Tokenizer {
    /// Starts the text that continues `prompt` and ends before the first of the `stops`. Empty stop texts are ignored.
    ///
    /// # Errors
    /// The tokenizer refuses the prompt.
    pub fn stream(&self, prompt: &[u32], stops: &[String]) -> Result<TextStream, Error> {
        // The text before decides whether the first word begins with a space.
        let text = self.decode(prompt)?;
        let taken = text.trim_end_matches(REPLACEMENT).to_string();
        Ok(TextStream {
            tokenizer: self.clone(),
            window: prompt.to_vec(),
            complete: prompt.len(),
            prompt: (taken != text).then_some(text),
            taken,
            stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(),
            held: HeldText::default(),
            kept: HashMap::new(),
            text: String::new(),
        })
    }
}

/// The character of bytes that are not UTF-8, such as the first bytes of an unfinished character.
const REPLACEMENT: char = '\u{fffd}';

/// Text that grows token by token.
///
/// A character is returned when all of its bytes have come. Text that may begin a stop text is held back until it
/// turns out not to be one.
#[derive(Debug)]
pub struct TextStream {
    tokenizer: Tokenizer,
    /// The latest tokens: those of the last whole characters, then those after them.
    window: Vec<u32>,
    /// The number of tokens of the last whole characters. They decide how the text after them begins.
    complete: usize,
    /// The prompt's text if it ends in U+FFFD, until text after it is taken. What follows may complete a character there.
    prompt: Option<String>,
    /// The part of the window's text that was taken.
    taken: String,
    stops: Vec<String>,
    /// Text that was taken but not returned, because it may begin a stop text.
    held: HeldText,
    /// Special tokens whose texts are part of the text.
    kept: HashMap<u32, String>,
    /// Text that was returned.
    text: String,
}

/// The text that a token adds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// The text that is final now; often empty.
    pub text: String,
    /// True if a stop text has come. Neither it nor the text after it is returned.
    pub stopped: bool,
}

impl TextStream {
    /// Makes the texts of these special tokens a part of the text, where they come. Others have none.
    #[must_use]
    pub fn keeping(mut self, special: &[&str]) -> Self {
        let known =
            special.iter().filter_map(|&text| Some((self.tokenizer.special_token(text)?, text.into())));
        self.kept = known.collect();
        self
    }

    /// Adds a token and returns the text that is final now.
    ///
    /// # Errors
    /// The tokenizer refuses the token.
    pub fn push(&mut self, token: u32) -> Result<Piece, Error> {
        if let Some(text) = self.kept.get(&token) {
            self.held.push(text);
            return Ok(self.release());
        }
        self.window.push(token);
        let text = self.tokenizer.decode(&self.window)?;
        let whole = text.trim_end_matches(REPLACEMENT);
        let is_whole = whole.len() == text.len();
        match self.after_taken(whole) {
            Some(new) => {
                self.held.push(new);
                if !new.is_empty() {
                    self.prompt = None;
                }
                if is_whole && !new.is_empty() {
                    self.forget_complete()?;
                } else {
                    self.taken = whole.to_string();
                }
            }
            // Bytes that are no characters have replaced characters before them, which were taken.
            None if is_whole => {
                let new = self.tokenizer.decode(&self.window[self.complete..])?;
                self.held.push(&new);
                self.prompt = None;
                self.forget_complete()?;
            }
            // An unfinished character can hide the characters before it until it is complete.
            None => return Ok(Piece::default()),
        }
        Ok(self.release())
    }

    /// Returns what follows the text that was taken; `None` if `text` does not begin with that.
    fn after_taken<'t>(&self, text: &'t str) -> Option<&'t str> {
        let after_prompt = self.prompt.as_deref().and_then(|prompt| text.strip_prefix(prompt));
        after_prompt.or_else(|| text.strip_prefix(self.taken.as_str()))
    }

    /// Drops the tokens before those that completed the text.
    fn forget_complete(&mut self) -> Result<(), Error> {
        self.window.drain(..self.complete);
        self.complete = self.window.len();
        self.taken = self.tokenizer.decode(&self.window)?;
        Ok(())
    }

    /// Ends the text and returns the rest of it.
    ///
    /// # Errors
    /// The tokenizer refuses the last tokens.
    pub fn finish(&mut self) -> Result<Piece, Error> {
        let text = self.tokenizer.decode(&self.window)?;
        // All whole characters were taken. The rest is bytes of a character that stays unfinished.
        match self.after_taken(&text) {
            Some(rest) => self.held.push(rest),
            None => self.held.push(&self.tokenizer.decode(&self.window[self.complete..])?),
        }
        self.prompt = None;
        self.taken = text;
        let mut piece = self.release();
        if !piece.stopped {
            let rest = self.held.take_all();
            piece.text.push_str(&rest);
            self.text.push_str(&rest);
        }
        Ok(piece)
    }

    /// Returns the whole text so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the held text up to a stop text, or up to text that may begin one.
    fn release(&mut self) -> Piece {
        let (text, found) = self.held.take_until(&self.stops);
        self.text.push_str(&text);
        Piece { text, stopped: found.is_some() }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tokenizer::test_tokenizers::{byte_fallback, byte_level},
        *,
    };

    /// Returns the pieces of a stream, with `$` after a stop text, or else the piece of `finish` at the end.
    fn pieces(tokenizer: &Tokenizer, prompt: &[u32], tokens: &[u32], stops: &[&str]) -> Vec<String> {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let mut stream = tokenizer.stream(prompt, &stops).unwrap();
        let mut found = vec![];
        for &token in tokens {
            let Piece { text, stopped } = stream.push(token).unwrap();
            found.push(text);
            if stopped {
                found.push("$".into());
                return found;
            }
        }
        found.push(stream.finish().unwrap().text);
        assert_eq!(found.concat(), stream.text());
        found
    }

    fn bytes(text: &str) -> Vec<u32> {
        byte_level().encode(text, false).unwrap()
    }

    #[test]
    fn a_character_comes_out_whole() {
        let found = pieces(&byte_level(), &[], &bytes("a€😀é"), &[]);
        assert_eq!(found, ["a", "", "", "€", "", "", "", "😀", "", "é", ""]);
        let euro_smile = [0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 258];
        let found = pieces(&byte_fallback(), &[], &euro_smile, &[]);
        assert_eq!(found, ["", "", "€", "", "", "", "😀", "é", ""]);
    }

    #[test]
    fn bytes_that_never_become_a_character() {
        let euro = bytes("€");
        assert_eq!(pieces(&byte_level(), &[], &euro[..2], &[]), ["", "", "\u{fffd}"]);
        let stray = [bytes("a"), euro[1..2].to_vec(), bytes("b")].concat();
        assert_eq!(pieces(&byte_level(), &[], &stray, &[]), ["a", "", "\u{fffd}b", ""]);
        // A real U+FFFD is indistinguishable until something follows.
        assert_eq!(pieces(&byte_level(), &[], &bytes("\u{fffd}"), &[]).concat(), "\u{fffd}");
        // A whole character stays as it was returned, even if a bad byte follows.
        assert_eq!(pieces(&byte_fallback(), &[], &[0xc3, 0xa9, 0xe2], &[]), ["", "é", "", "\u{fffd}"]);
    }

    #[test]
    fn bytes_that_are_no_character_hide_no_text_after_them() {
        let tokenizer = byte_fallback();
        let bad = [0xc3, 0xa9, 0xe2, 256, 257];
        // The tokenizer replaces the character before the bad byte, too.
        assert_eq!(tokenizer.decode(&bad).unwrap(), "\u{fffd}\u{fffd}\u{fffd} Paris is");
        let found = pieces(&tokenizer, &[], &bad, &[]);
        assert_eq!(found, ["", "é", "", "\u{fffd} Paris", " is", ""]);
        assert_eq!(
            pieces(&tokenizer, &[], &bad, &[" is"]),
            ["", "é", "", "\u{fffd} Paris", "", "$"],
            "a stop text after a bad byte"
        );
        let found = pieces(&tokenizer, &[], &[256, 0x0a, 0xf0, 0x9f, 257, 256], &[]);
        assert_eq!(found, ["Paris", "\n", "", "", "\u{fffd}\u{fffd} is", " Paris", ""]);
        // The line's end is that of the prompt.
        let found = pieces(&tokenizer, &[256, 0x0a], &[0xf0, 257, 0x0a, 0xf0, 0x9f], &[]);
        assert_eq!(found, ["", "\u{fffd} is", "\n", "", "", "\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn a_prompt_that_ends_within_a_character() {
        let euro = bytes("€");
        assert_eq!(pieces(&byte_level(), &euro[..2], &euro[2..], &[]), ["€", ""]);
        // The character stays unfinished, and is the prompt's.
        assert_eq!(pieces(&byte_level(), &euro[..2], &bytes("b"), &[]), ["b", ""]);
    }

    #[test]
    fn a_prompt_that_ends_in_a_replacement_character() {
        let of = |text: &str| pieces(&byte_level(), &bytes("a\u{fffd}"), &bytes(text), &[]);
        assert_eq!(of("b"), ["b", ""]);
        assert_eq!(of(""), [""]);
        assert_eq!(of("\u{fffd}b"), ["", "", "", "\u{fffd}b", ""]);
        assert_eq!(of("\u{fffd}"), ["", "", "", "\u{fffd}"]);
    }

    #[test]
    fn the_first_word_keeps_its_space_after_a_prompt() {
        let tokenizer = byte_fallback();
        assert_eq!(pieces(&tokenizer, &[256], &[257, 256], &[]), [" is", " Paris", ""]);
        assert_eq!(pieces(&tokenizer, &[], &[257, 256], &[]), ["is", " Paris", ""]);
        let spaces = [256, 259, 259, 256];
        assert_eq!(pieces(&tokenizer, &[], &spaces, &[]).concat(), tokenizer.decode(&spaces).unwrap());
    }

    #[test]
    fn stop_texts() {
        let stream = |text: &str, stops: &[&str]| pieces(&byte_level(), &[], &bytes(text), stops);
        assert_eq!(stream("ab###c", &["###"]), ["a", "b", "", "", "", "$"]);
        // Not a stop text after all.
        assert_eq!(stream("a##b", &["###"]), ["a", "", "", "##b", ""]);
        assert_eq!(stream("a##", &["###"]), ["a", "", "", "##"]);
        // The end of one beginning is the beginning of another.
        assert_eq!(stream("aab", &["ab"]), ["", "a", "", "$"]);
        assert_eq!(stream("xyz", &["yz", "y"]), ["x", "", "$"]);
        assert_eq!(stream("a€b", &["€"]), ["a", "", "", "", "$"]);
        assert_eq!(stream("ab", &[""]), ["a", "b", ""]);
    }

    #[test]
    fn a_stop_text_within_one_token() {
        let found = pieces(&byte_fallback(), &[256], &[257, 256, 257], &["ar"]);
        assert_eq!(found, [" is", " P", "$"]);
    }

    #[test]
    fn special_tokens_have_no_text_unless_they_are_kept() {
        let tokens = [&bytes("a"), &[256][..], &bytes("b"), &[257], &bytes("c")].concat();
        assert_eq!(pieces(&byte_level(), &[256], &tokens, &[]).concat(), "abc");
        let mut stream = byte_level().stream(&[], &["</s>c".into()]).unwrap().keeping(&["</s>", "<x>"]);
        let found: Vec<_> = tokens.iter().map(|&token| stream.push(token).unwrap()).collect();
        assert_eq!(stream.text(), "ab");
        assert!(found.last().unwrap().stopped);
    }
}
