//! What is asked of a model.

use crate::engine::Request;

/// A prompt in tokens, and whether its answer is a message of its own or continues the prompt's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// True for a chat.
    pub is_message: bool,
}

/// A request, with the text that its answer continues and the texts that end it.
#[derive(Debug)]
pub struct TextRequest {
    /// The request.
    pub request: Request,
    pub(crate) before: Vec<u32>,
    pub(crate) stop: Vec<String>,
}

impl Prompt {
    /// Returns the tokens whose text the answer continues. `has_format` says that a grammar decides what it is.
    ///
    /// A message begins with its first word. A format says how its text begins, which may be with a space.
    pub(super) fn before(&self, has_format: bool) -> Vec<u32> {
        if self.is_message && !has_format { Vec::new() } else { self.tokens.clone() }
    }
}
