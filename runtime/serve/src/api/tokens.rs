//! `POST /tokenize` and `/detokenize`, as llama.cpp's server has them.

use super::{error::ApiError, fields::Fields};

/// A request for the tokens of a text.
#[derive(Debug)]
pub(crate) struct TokenizeRequest {
    pub(crate) model: String,
    pub(crate) content: String,
    /// Whether to add the tokens that the checkpoint begins texts with.
    pub(crate) add_special: bool,
}

/// A request for the text of tokens.
#[derive(Debug)]
pub(crate) struct DetokenizeRequest {
    pub(crate) model: String,
    pub(crate) tokens: Vec<u32>,
}

impl TokenizeRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// It is no JSON object, a field is wrong, or one is not supported.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::parse(body)?;
        let model = fields.take("model")?.unwrap_or_default();
        let content = fields.require("content")?;
        let add_special = fields.take("add_special")?.unwrap_or(false);
        fields.finish()?;
        Ok(Self { model, content, add_special })
    }
}

impl DetokenizeRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// It is no JSON object, a field is wrong, or one is not supported.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::parse(body)?;
        let model = fields.take("model")?.unwrap_or_default();
        let tokens = fields.require("tokens")?;
        fields.finish()?;
        Ok(Self { model, tokens })
    }
}
