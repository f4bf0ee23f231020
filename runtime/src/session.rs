//! The contract between generation and whatever runs the model.

use std::time::Duration;

use crate::error::Error;

/// What a session can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Tokens that the cache holds.
    pub context: usize,
    /// Logits a token: ids are below it.
    pub vocab: usize,
    /// Sizes of the chunks that a prompt goes through in, ascending.
    pub prefill: Vec<usize>,
    /// Cache lengths that a step can attend over, ascending.
    pub decode: Vec<usize>,
    /// The bundle's target that it runs.
    pub target: String,
    /// What it runs on, for people: `local-task, 2 threads`.
    pub device: String,
    /// Threads of the CPU that compute; 1 where another device does.
    pub threads: usize,
    /// Whether its weights had to be packed for the device when it was loaded, which can be done once, ahead of time.
    pub packed_at_load: bool,
}

/// One sequence of tokens on a device, with its cache.
///
/// After an error from [`prefill`](Self::prefill) or [`decode_step`](Self::decode_step) the position is where it was
/// before the call or at the end of a chunk; [`rewind`](Self::rewind) makes the session usable again.
pub trait Session {
    /// What this session can do.
    fn capabilities(&self) -> &Capabilities;

    /// Tokens in the cache.
    fn position(&self) -> usize;

    /// Drops everything after `position`; 0 starts anew.
    ///
    /// # Errors
    /// When `position` lies beyond [`Session::position`].
    fn rewind(&mut self, position: usize) -> Result<(), Error>;

    /// Appends `tokens`, at least one, in chunks. Gives the id with the largest logit after the last one.
    ///
    /// # Errors
    /// When [`check_append`] refuses the tokens, or the device fails.
    fn prefill(&mut self, tokens: &[u32]) -> Result<u32, Error>;

    /// Appends one token. Gives the id with the largest logit after it.
    ///
    /// # Errors
    /// When [`check_append`] refuses the token, or the device fails.
    fn decode_step(&mut self, token: u32) -> Result<u32, Error>;

    /// The logits after the last token appended, one per id of the vocabulary. They are read from the device when this
    /// is called and not before.
    ///
    /// # Errors
    /// When nothing was appended since the start or the last rewind, or the device fails.
    fn logits(&mut self) -> Result<Vec<f32>, Error>;

    /// Starts a record of what the device does.
    ///
    /// # Errors
    /// When the session keeps none, as by default, or keeps one already.
    fn start_profile(&mut self) -> Result<(), Error> {
        Err(Error::NoProfile { device: self.capabilities().device.clone() })
    }

    /// Ends the record; gives what ran, in no order.
    ///
    /// # Errors
    /// When the device fails.
    fn end_profile(&mut self) -> Result<Vec<Dispatch>, Error> {
        Ok(Vec::new())
    }
}

/// What the calls of one function took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// The function's name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// From the start of a call to its end, of all calls.
    pub time: Duration,
}

/// Whether `tokens` may be appended at `position`: there is one, ids are in the vocabulary, and the cache has room.
///
/// # Errors
/// What is wrong with them.
pub fn check_append(capabilities: &Capabilities, position: usize, tokens: &[u32]) -> Result<(), Error> {
    let &Capabilities { context, vocab, .. } = capabilities;
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

/// Whether a session at `position` may go back to `target`.
///
/// # Errors
/// When `target` lies ahead.
pub fn check_rewind(position: usize, target: usize) -> Result<(), Error> {
    if target > position { Err(Error::Rewind { target, position }) } else { Ok(()) }
}
