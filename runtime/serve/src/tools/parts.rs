//! The parts of an answer.

use std::sync::Arc;

use super::{
    Function,
    form::{AnswerForm, CallForm},
};

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

impl Expected {
    /// Returns the form of calls, if there can be any. Harmony's is that of every answer.
    pub(super) fn calls(&self) -> Option<CallForm> {
        let may_call = !self.functions.is_empty();
        self.form.calls.filter(|&form| may_call || form == CallForm::Harmony)
    }

    /// Returns the special tokens whose texts the answer needs.
    pub(crate) fn special(&self) -> Vec<&'static str> {
        let reasoning = self.form.reasoning.map(|markers| [markers.begin, markers.end]);
        let calls = self.calls().map(CallForm::special).unwrap_or_default();
        reasoning.into_iter().flatten().chain(calls.iter().copied()).collect()
    }
}
