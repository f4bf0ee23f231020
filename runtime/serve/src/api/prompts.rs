//! Texts of requests that may be tokens already.

use mlxcel_runtime::Tokenizer;
use serde::Deserialize;

use super::{error::ApiError, fields::Fields};

/// A text, or its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
}

impl Prompt {
    /// Returns the tokens, with the special ones that the checkpoint begins texts with.
    ///
    /// # Errors
    /// The tokenizer refuses the text.
    pub(crate) fn encode(self, tokenizer: &Tokenizer) -> Result<Vec<u32>, ApiError> {
        match self {
            Self::Text(text) => Ok(tokenizer.encode(&text, true)?),
            Self::Tokens(tokens) => Ok(tokens),
        }
    }
}

/// One text or several, as text or as tokens.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a string, a list of strings, or a list of token ids")]
enum Prompts {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    ManyTokens(Vec<Vec<u32>>),
}

/// Takes the field with texts, at least one and at most `most`. `what` they are is a plural.
///
/// # Errors
/// It is absent, has another type, or has another number of texts.
pub(super) fn require(
    fields: &mut Fields,
    name: &str,
    what: &str,
    most: usize,
) -> Result<Vec<Prompt>, ApiError> {
    let prompts = match fields.require(name)? {
        Prompts::Text(text) => vec![Prompt::Text(text)],
        Prompts::Texts(texts) => texts.into_iter().map(Prompt::Text).collect(),
        Prompts::Tokens(tokens) if !tokens.is_empty() => vec![Prompt::Tokens(tokens)],
        Prompts::Tokens(_) => vec![],
        Prompts::ManyTokens(all) => all.into_iter().map(Prompt::Tokens).collect(),
    };
    if !(1..=most).contains(&prompts.len()) {
        let message = format!("found {} {what}, expected 1 to {most}", prompts.len());
        return Err(ApiError::invalid_field(name, message));
    }
    if prompts.iter().any(|prompt| *prompt == Prompt::Tokens(vec![])) {
        return Err(ApiError::invalid_field(
            name,
            format!("one of the {what} has no tokens, expected at least one"),
        ));
    }
    Ok(prompts)
}
