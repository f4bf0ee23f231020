//! The contract between programs that need embeddings and the device that runs the model.

use crate::{error::Error, session::Capabilities};

/// A model on a device that turns a text into one vector.
pub trait Encoder {
    /// Returns the encoder's limits and its device. A text runs whole, in the smallest `prefill` size that holds it.
    fn capabilities(&self) -> &Capabilities;

    /// Returns the number of elements of an embedding.
    fn width(&self) -> usize;

    /// Computes the embedding of a text of at least one token, including the tokenizer's special tokens.
    ///
    /// # Errors
    /// [`check_append`](crate::check_append) refuses the tokens, or the device fails.
    fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Error>;
}
