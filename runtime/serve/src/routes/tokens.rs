//! `POST /tokenize`, `/detokenize` and `/apply-template`, as llama.cpp's server has them.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use super::body::JsonBody;
use crate::{
    api::{
        chat::ChatRequest,
        error::ApiError,
        prompts::Prompt,
        tokens::{DetokenizeRequest, TokenizeRequest},
    },
    aside::aside,
    state::Shared,
};

/// Returns the tokens of `content`; with `add_special`, those that the checkpoint begins texts with, too.
pub(super) async fn tokenize(
    State(state): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, ApiError> {
    let TokenizeRequest { model, content, add_special } = TokenizeRequest::parse(&body)?;
    let model = state.model(&model)?;
    let encode = move || match add_special {
        true => Prompt::Text(content).encode(model.tokenizer()),
        false => Ok(model.tokenizer().encode(&content, false)?),
    };
    let tokens = aside(encode).await?;
    Ok(Json(json!({ "tokens": tokens })))
}

/// Returns the text of `tokens`.
pub(super) async fn detokenize(
    State(state): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, ApiError> {
    let DetokenizeRequest { model, tokens } = DetokenizeRequest::parse(&body)?;
    let model = state.model(&model)?;
    let count = model.vocabulary();
    let is_known = |token: &u32| usize::try_from(*token).is_ok_and(|token| token < count);
    if let Some(index) = tokens.iter().position(|token| !is_known(token)) {
        let message =
            format!("the token {} has no text, expected 0 to {}", tokens[index], count.saturating_sub(1));
        return Err(ApiError::invalid_field(format!("tokens[{index}]"), message));
    }
    Ok(Json(json!({ "content": model.tokenizer().decode(&tokens)? })))
}

/// Returns the tokens of a chat by the checkpoint's template, and their text.
pub(super) async fn apply_template(
    State(state): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, ApiError> {
    let request = ChatRequest::parse(&body)?;
    let model = state.model(&request.model)?;
    let generator = model.as_generator()?.clone();
    let (prompt, tokens) = aside(move || generator.render_chat(&request.chat)).await?;
    Ok(Json(json!({ "prompt": prompt, "tokens": tokens })))
}
