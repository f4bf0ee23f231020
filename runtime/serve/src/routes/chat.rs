//! `POST /v1/chat/completions`.

use axum::{extract::State, http::HeaderMap, response::Response};

use super::{
    body::{Body, json_body},
    generate::{Asked, generate},
};
use crate::{
    api::{answers::Endpoint, chat::ChatRequest, error::ApiError},
    state::Shared,
};

pub(super) async fn complete(
    State(state): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let ChatRequest { model, chat, logprobs, generation } =
        ChatRequest::parse(&json_body(&state, &headers, body)?)?;
    let model = state.model(&model)?.clone();
    let prompt = model.encode_chat(&chat)?;
    let asked = Asked { endpoint: Endpoint::Chat, prompts: vec![prompt], logprobs, generation };
    generate(state, model, asked).await
}
