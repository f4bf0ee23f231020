//! The contract between programs that need embeddings and the device that runs the model.

use crate::{
    error::Error,
    session::{Capabilities, check_append},
};

/// A model on a device that turns each text into one vector.
pub trait Encoder {
    /// Returns the encoder's limits and its device. `prefill` has the rows of its calls, ascending.
    fn capabilities(&self) -> &Capabilities;

    /// Returns the number of elements of an embedding.
    fn width(&self) -> usize;

    /// Computes the embedding of each text, in the order of `texts`.
    ///
    /// A text is at least one token, including the tokenizer's special tokens. As many texts as fit go through the device
    /// in one call, so that many texts at a time are faster than one by one. On a target whose
    /// [`Serving::exact`](mlxcel_artifacts::Serving) is true, an embedding has the same bits whatever texts are beside it.
    ///
    /// # Errors
    /// [`check_texts`] refuses a text, or the device fails.
    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, Error>;
}

/// Checks that every text can be embedded, before any is.
///
/// # Errors
/// [`Error::Text`] names the first text that [`check_append`] refuses.
pub fn check_texts(capabilities: &Capabilities, texts: &[&[u32]]) -> Result<(), Error> {
    texts.iter().enumerate().try_for_each(|(index, tokens)| {
        check_append(capabilities, 0, tokens)
            .map_err(|reason| Error::Text { index, reason: Box::new(reason) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_text_is_named() {
        let capabilities = Capabilities { context: 2, vocab: 10, ..Capabilities::default() };
        let refused = |texts: &[&[u32]]| check_texts(&capabilities, texts).map_err(|error| error.to_string());
        assert_eq!(refused(&[]), Ok(()));
        assert_eq!(refused(&[&[1], &[2, 3]]), Ok(()));
        let starts = |texts: &[&[u32]], start: &str| {
            let message = refused(texts).unwrap_err();
            assert!(message.starts_with(start), "{message}");
        };
        starts(&[&[1], &[]], "text 2: the prompt has no tokens, expected at least one\nhint: ");
        starts(&[&[1, 10]], "text 1: token 2 of the prompt has the id 10, expected 0 to 9\nhint: ");
        starts(&[&[1], &[2], &[1; 3]], "text 3: 3 tokens at position 0, expected at most 2: ");
    }
}
