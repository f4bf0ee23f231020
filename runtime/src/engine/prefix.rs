//! Keys of whole pages: a page is known by its tokens and all tokens before them.

use mlxcel_artifacts::{Digest, entry::PAGE};

/// The keys of a text's whole pages, in order. Each depends on the model and on all tokens up to the page's end.
#[derive(Debug, Clone)]
pub(super) struct PageKeys {
    model: Digest,
    keys: Vec<Digest>,
}

impl PageKeys {
    /// Makes the keys of the whole pages of `tokens`.
    pub(super) fn new(model: Digest, tokens: &[u32]) -> Self {
        let mut keys = Self { model, keys: vec![] };
        keys.extend(tokens);
        keys
    }

    /// Adds the keys of pages that have become whole. `tokens` is the text from its start.
    pub(super) fn extend(&mut self, tokens: &[u32]) {
        for page in tokens.chunks_exact(PAGE).skip(self.keys.len()) {
            let before = self.keys.last().unwrap_or(&self.model);
            let mut bytes = before.hex().into_bytes();
            bytes.extend(page.iter().flat_map(|token| token.to_le_bytes()));
            self.keys.push(Digest::of(&bytes));
        }
    }

    /// Returns the keys.
    pub(super) fn as_slice(&self) -> &[Digest] {
        &self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_the_model_and_on_everything_before() {
        let keys = |model: &str, tokens: &[u32]| PageKeys::new(Digest::of(model.as_bytes()), tokens).keys;
        let text: Vec<u32> = (0..200).collect();
        let mut other = text.clone();
        other[3] = 9;
        let found = keys("a", &text);
        assert_eq!(found.len(), 3);
        assert_eq!(found[..2], keys("a", &text[..130]));
        assert!(found.iter().zip(keys("a", &other)).all(|(a, b)| *a != b));
        assert!(found.iter().zip(keys("b", &text)).all(|(a, b)| *a != b));
        other = text.clone();
        other[70] = 9;
        let later = keys("a", &other);
        assert_eq!(found[0], later[0]);
        assert!(found[1] != later[1] && found[2] != later[2]);
        // Two pages with the same tokens.
        let twice = keys("a", &[7; 128]);
        assert_ne!(twice[0], twice[1]);
    }

    #[test]
    fn keys_grow_with_the_text() {
        let text: Vec<u32> = (0..200).collect();
        let model = Digest::of(b"a");
        let mut grown = PageKeys::new(model, &text[..63]);
        assert!(grown.as_slice().is_empty());
        grown.extend(&text[..129]);
        grown.extend(&text);
        assert_eq!(grown.as_slice(), PageKeys::new(model, &text).as_slice());
    }
}
