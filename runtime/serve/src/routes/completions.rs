//! `POST /v1/completions`.

use axum::{Extension, extract::State, response::Response};

use super::{
    body::JsonBody,
    generate::{Asked, generate},
};
use crate::{
    api::{answers::Endpoint, completion::CompletionRequest, error::ApiError},
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
    let CompletionRequest { model, prompts, logprobs, generation } = CompletionRequest::parse(&body)?;
    let model = state.model(&model)?;
    let generator = model.as_generator()?.clone();
    let encoder = generator.clone();
    let encode = move || prompts.into_iter().map(|prompt| prompt.encode(encoder.tokenizer())).collect();
    let prompts: Vec<_> = aside(encode).await?;
    let grammar = generator.grammars().get_any(generation.constraint.as_ref()).await?;
    let asked = Asked {
        generator,
        endpoint: Endpoint::Completion,
        prompts,
        logprobs,
        generation,
        grammar,
        expected: Expected::default(),
    };
    generate(state, &model, record, asked).await
}
