//! The parts of an answer.

use std::sync::Arc;

use super::{Function, form::AnswerForm};

/// More of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delta {
    /// Text for who asked.
    Content(String),
    /// Text of the model's reasoning.
    Reasoning(String),
    /// The start of a call.
    Call {
        /// The name of the function.
        name: String,
    },
    /// A part of the JSON text of the latest call's arguments.
    Arguments(String),
}

/// What an answer can have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub(crate) form: AnswerForm,
    /// Functions that may be called. Without any, the text of a call is text.
    pub(crate) functions: Arc<[Function]>,
    /// Whether the prompt ends with the begin of the reasoning.
    pub(crate) is_reasoning: bool,
}
