//! Functions that a model may call, and the forms in which checkpoints write calls.

mod calls;
mod coder;
mod form;
mod grammar;
mod harmony;
mod json;
mod parts;
mod plain;
mod reader;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use form::AnswerForm;
pub(crate) use grammar::{CallRules, Enforced, UnenforcedWord, grammar, unenforced_word};
pub(crate) use parts::{Delta, Expected};
pub(crate) use reader::AnswerReader;

/// A function that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The JSON schema of its arguments, which are an object.
    pub(crate) parameters: Map<String, Value>,
    /// Whether a schema that cannot be enforced is an error.
    pub(crate) is_strict: bool,
}

impl Function {
    /// Returns the schema of an argument.
    fn parameter(&self, key: &str) -> Option<&Value> {
        self.parameters.get("properties")?.get(key)
    }

    /// Returns whether an argument is a string, or of no known type.
    fn parameter_is_text(&self, key: &str) -> bool {
        let Some(schema) = self.parameter(key) else { return true };
        let is_string = |schema: &Value| match (&schema["type"], &schema["enum"]) {
            (Value::String(kind), _) => kind == "string",
            (Value::Null, Value::Array(values)) => values.iter().all(Value::is_string),
            _ => false,
        };
        is_string(schema) || schema.as_object().is_some_and(Map::is_empty)
    }
}
