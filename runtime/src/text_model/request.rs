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
