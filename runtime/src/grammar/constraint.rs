//! What an answer must be.

use llguidance::api::TopLevelGrammar;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// White space between the parts of JSON: a space, or a line break with an indentation.
///
/// JSON allows any amount. A model that is unsure could go on with it to the end of its answer.
const WHITESPACE: &str = r"( |\n[ \t]{0,20})";

/// The key of llguidance's own options in a schema.
const OPTIONS: &str = "x-guidance";

/// The most brackets within one another, in a grammar or a regular expression.
const MAX_DEPTH: usize = 200;

/// The longest grammar or regular expression, in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// What an answer must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// JSON that a schema accepts.
    JsonSchema(Value),
    /// A text that a regular expression matches as a whole, in the syntax of Rust's `regex` without look-around.
    Regex(String),
    /// A text of a grammar in llguidance's form of Lark.
    Lark(String),
}

impl Constraint {
    /// Returns the constraint to a JSON object.
    #[must_use]
    pub fn json_object() -> Self {
        Self::JsonSchema(json!({ "type": "object" }))
    }

    /// Returns JSON that a schema accepts as a part of a [`Constraint::Lark`].
    #[must_use]
    pub fn embedded_schema(schema: &Value) -> String {
        format!("%json {}", with_options(schema.clone()))
    }

    /// Returns the grammar as llguidance takes it, or what is wrong with it.
    pub(super) fn to_grammar(&self) -> Result<TopLevelGrammar, String> {
        match self {
            Self::JsonSchema(schema) => {
                let schema = match schema {
                    Value::Bool(true) => json!({}),
                    Value::Object(_) => schema.clone(),
                    other => return Err(format!("the schema is {}, expected a JSON object", kind(other))),
                };
                if schema.get(OPTIONS).is_some() {
                    return Err(format!("the schema has {OPTIONS}, expected only keywords of JSON Schema"));
                }
                Ok(TopLevelGrammar::from_json_schema(with_options(schema)))
            }
            Self::Regex(regex) => {
                check_size(regex, "regular expression")?;
                Ok(TopLevelGrammar::from_regex(regex))
            }
            Self::Lark(grammar) => {
                check_size(grammar, "grammar")?;
                Ok(TopLevelGrammar::from_lark(grammar.clone()))
            }
        }
    }
}

/// Adds llguidance's options to a schema that is an object.
fn with_options(mut schema: Value) -> Value {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.insert(OPTIONS.to_owned(), json!({ "whitespace_pattern": WHITESPACE }));
    }
    schema
}

/// Returns the name of a JSON type that no schema is of.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "false, which nothing matches",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Checks a text whose parser calls itself for each bracket.
fn check_size(text: &str, what: &str) -> Result<(), String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("the {what} has {} bytes, expected at most {MAX_LENGTH}", text.len()));
    }
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MAX_DEPTH {
        return Err(format!(
            "the {what} has {deepest} brackets in one another, expected at most {MAX_DEPTH}"
        ));
    }
    Ok(())
}
