//! `POST /v1/chat/completions`.

use axum::{extract::State, response::Response};

use super::{
    body::JsonBody,
    generate::{Asked, generate},
};
use crate::{
    api::{answers::Endpoint, chat::ChatRequest, error::ApiError},
    state::Shared,
};

pub(super) async fn complete(
    State(state): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let ChatRequest { model, chat, logprobs, generation } = ChatRequest::parse(&body)?;
    let model = state.model(&model)?.clone();
    let prompt = model.encode_chat(&chat)?;
    let asked = Asked { endpoint: Endpoint::Chat, prompts: vec![prompt], logprobs, generation };
    generate(state, model, asked).await
}
