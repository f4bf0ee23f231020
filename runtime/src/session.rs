//! The contract between generation and the device that runs the model.

use std::time::Duration;

use crate::error::Error;

/// Limits of a session or an encoder, and the device it runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Tokens that the cache holds.
    pub context: usize,
    /// The size of the vocabulary: token ids are below it.
    pub vocab: usize,
    /// Chunk sizes of a prompt, ascending.
    pub prefill: Vec<usize>,
    /// Cache lengths that a decode step can attend over, ascending.
    pub decode: Vec<usize>,
    /// The bundle's target that runs.
    pub target: String,
    /// The device, for messages: `local-task, 2 threads`.
    pub device: String,
    /// CPU threads that compute; 1 if another device computes.
    pub threads: usize,
    /// True if loading packed the weights for the device, which [`pack`](crate::pack) does once, ahead of time.
    pub packed_at_load: bool,
}

/// One sequence of tokens on a device, with its cache.
///
/// After an error from [`prefill`](Self::prefill) or [`decode_step`](Self::decode_step) the position is where it was
/// before the call or at the end of a chunk; [`rewind`](Self::rewind) makes the session usable again.
pub trait Session {
    /// Returns the session's limits and its device.
    fn capabilities(&self) -> &Capabilities;

    /// Returns the number of tokens in the cache.
    fn position(&self) -> usize;

    /// Drops the tokens after `position`; 0 drops all.
    ///
    /// # Errors
    /// `position` is beyond [`Session::position`].
    fn rewind(&mut self, position: usize) -> Result<(), Error>;

    /// Appends `tokens`, at least one, in chunks. Returns the id with the largest logit after the last token.
    ///
    /// # Errors
    /// [`check_append`] refuses the tokens, or the device fails.
    fn prefill(&mut self, tokens: &[u32]) -> Result<u32, Error>;

    /// Appends one token. Returns the id with the largest logit after it.
    ///
    /// # Errors
    /// [`check_append`] refuses the token, or the device fails.
    fn decode_step(&mut self, token: u32) -> Result<u32, Error>;

    /// Reads the logits after the last token from the device, one per id of the vocabulary.
    ///
    /// # Errors
    /// No token was appended since the start or the last rewind, or the device fails.
    fn logits(&mut self) -> Result<Vec<f32>, Error>;

    /// Starts recording the dispatches that the device runs.
    ///
    /// # Errors
    /// The session cannot record, as by default, or is recording already.
    fn start_profile(&mut self) -> Result<(), Error> {
        Err(Error::NoProfile { device: self.capabilities().device.clone() })
    }

    /// Stops recording. Returns the functions that ran, in no particular order.
    ///
    /// # Errors
    /// The device fails.
    fn end_profile(&mut self) -> Result<Vec<Dispatch>, Error> {
        Ok(Vec::new())
    }
}

/// The calls of one function of a module, in a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// The function's name.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The time from start to end, summed over the calls.
    pub time: Duration,
}

/// Checks that `tokens` can be appended at `position`.
///
/// # Errors
/// There are no tokens, an id is outside the vocabulary, or the cache has no room.
pub fn check_append(capabilities: &Capabilities, position: usize, tokens: &[u32]) -> Result<(), Error> {
    check_tokens(capabilities.context, capabilities.vocab, position, tokens)
}

/// Checks that `tokens` are of the vocabulary and fit a cache of `context` positions at `position`.
///
/// # Errors
/// As [`check_append`].
pub(crate) fn check_tokens(
    context: usize,
    vocab: usize,
    position: usize,
    tokens: &[u32],
) -> Result<(), Error> {
    if tokens.is_empty() {
        return Err(Error::NoTokens);
    }
    if let Some(index) = tokens.iter().position(|&token| token as usize >= vocab) {
        return Err(Error::TokenOutOfRange { token: tokens[index], index, vocab });
    }
    if tokens.len() > context.saturating_sub(position) {
        return Err(Error::TooLong { tokens: tokens.len(), position, context });
    }
    Ok(())
}

/// Checks that a session at `position` can go back to `target`.
///
/// # Errors
/// `target` lies ahead.
pub fn check_rewind(position: usize, target: usize) -> Result<(), Error> {
    if target > position { Err(Error::Rewind { target, position }) } else { Ok(()) }
}
