//! The contract between programs that need embeddings and the device that runs the model.

use crate::{device::DeviceInfo, error::Error, model::check_prompt};

/// Limits of an [`Encoder`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncoderLimits {
    /// Tokens of the longest text.
    pub context: usize,
    /// The size of the vocabulary: token ids are below it.
    pub vocab: usize,
    /// Elements of an embedding.
    pub width: usize,
    /// The rows of calls, ascending.
    pub rows: Vec<usize>,
}

/// A model on a device that turns each text into one vector.
pub trait Encoder {
    /// Returns the limits of texts and calls.
    fn limits(&self) -> &EncoderLimits;

    /// Returns what the model runs on.
    fn device(&self) -> &DeviceInfo;

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
/// [`Error::Text`] names the first text that [`check_prompt`] refuses.
pub fn check_texts(limits: &EncoderLimits, texts: &[&[u32]]) -> Result<(), Error> {
    texts.iter().enumerate().try_for_each(|(index, tokens)| {
        check_prompt(limits.context, limits.vocab, tokens)
            .map_err(|reason| Error::Text { index, reason: Box::new(reason) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_text_is_named() {
        let limits = EncoderLimits { context: 2, vocab: 10, ..EncoderLimits::default() };
        let refused = |texts: &[&[u32]]| check_texts(&limits, texts).map_err(|error| error.to_string());
        assert_eq!(refused(&[]), Ok(()));
        assert_eq!(refused(&[&[1], &[2, 3]]), Ok(()));
        let starts = |texts: &[&[u32]], start: &str| {
            let message = refused(texts).unwrap_err();
            assert!(message.starts_with(start), "{message}");
        };
        starts(&[&[1], &[]], "text 2: the prompt has no tokens, expected at least one\nhint: ");
        starts(&[&[1, 10]], "text 1: token 2 of the prompt has the id 10, expected 0 to 9\nhint: ");
        starts(&[&[1], &[2], &[1; 3]], "text 3: 3 tokens, expected at most 2, ");
    }
}
