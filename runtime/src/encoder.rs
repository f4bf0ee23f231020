//! The contract between whoever needs embeddings of texts and whatever runs the model.

use crate::{Capabilities, Error, check_append};

/// A model on a device that makes one vector of a text.
pub trait Encoder {
    /// What it can do. A text goes through whole, in the smallest of the `prefill` sizes that holds it.
    fn capabilities(&self) -> &Capabilities;

    /// How many numbers an embedding has.
    fn width(&self) -> usize;

    /// The embedding of a text of at least one token, with the special tokens that its tokenizer puts around it.
    ///
    /// # Errors
    /// When [`check_append`] refuses the tokens, or the device fails.
    fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Error>;
}

/// Which of `sizes`, ascending, a text of these tokens goes through.
///
/// # Errors
/// When [`check_append`] refuses the tokens.
pub(crate) fn size_for(capabilities: &Capabilities, tokens: &[u32]) -> Result<usize, Error> {
    check_append(capabilities, 0, tokens)?;
    // A manifest is valid only if its largest entry holds the context.
    Ok(capabilities.prefill.partition_point(|&size| size < tokens.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_through_the_smallest_size_that_holds_it() {
        let capabilities =
            Capabilities { context: 100, vocab: 10, prefill: vec![8, 32, 128], ..Capabilities::default() };
        let size = |count: usize| size_for(&capabilities, &vec![1; count]).map_err(|error| error.to_string());
        for (count, expected) in [(1, 0), (8, 0), (9, 1), (32, 1), (33, 2), (100, 2)] {
            assert_eq!(size(count), Ok(expected), "{count}");
        }
        assert!(size(101).unwrap_err().starts_with("101 tokens at position 0, expected at most 100"));
        assert_eq!(size(0).unwrap_err(), "the prompt has no tokens, expected at least one");
    }
}
