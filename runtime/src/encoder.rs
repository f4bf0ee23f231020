//! The contract between whoever needs embeddings of texts and whatever runs the model.

use crate::{error::Error, session::Capabilities};

/// A model on a device that makes one vector of a text.
pub trait Encoder {
    /// What it can do. A text goes through whole, in the smallest of the `prefill` sizes that holds it.
    fn capabilities(&self) -> &Capabilities;

    /// How many numbers an embedding has.
    fn width(&self) -> usize;

    /// The embedding of a text of at least one token, with the special tokens that its tokenizer puts around it.
    ///
    /// # Errors
    /// When [`check_append`](crate::check_append) refuses the tokens, or the device fails.
    fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Error>;
}
