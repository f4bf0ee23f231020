//! `POST /v1/chat/completions`.

use axum::{Extension, extract::State, response::Response};

use super::{
    body::JsonBody,
    generate::{Asked, generate},
};
use crate::{
    api::{answers::Endpoint, chat::ChatRequest, error::ApiError},
    aside::aside,
    observe::record::Record,
    state::Shared,
    tools::Expected,
};

pub(super) async fn complete(
    State(state): State<Shared>,
    Extension(record): Extension<Record>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let ChatRequest { model, chat, functions, rules, logprobs, generation } = ChatRequest::parse(&body)?;
    let model = state.model(&model)?;
    let generator = model.as_generator()?.clone();
    let encoder = generator.clone();
    let prompt = aside(move || encoder.encode_chat(&chat)).await?;
    // A format holds from the first token, so that nothing is reasoning and nothing a call.
    let expected = match generation.constraint {
        Some(_) => Expected::default(),
        None => generator.expected(functions, &prompt)?,
    };
    let grammar = match generator.grammars().get_any(generation.constraint.as_ref()).await? {
        None => generator.grammar_of_calls(&expected, rules).await?,
        format => format,
    };
    let prompts = vec![prompt];
    let endpoint = Endpoint::Chat;
    let asked = Asked { generator, endpoint, prompts, logprobs, generation, grammar, expected };
    generate(state, &model, record, asked).await
}
