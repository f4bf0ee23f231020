//! `POST /v1/embeddings`.

use axum::{Extension, Json, extract::State};
use mlxcel_runtime::Embeddings;

use super::body::JsonBody;
use crate::{
    api::{
        embeddings::{EmbeddingAnswer, EmbeddingRequest},
        error::ApiError,
    },
    observe::record::Record,
    state::Shared,
};

pub(super) async fn embed(
    State(state): State<Shared>,
    Extension(record): Extension<Record>,
    JsonBody(body): JsonBody,
) -> Result<Json<EmbeddingAnswer>, ApiError> {
    let EmbeddingRequest { model, inputs, format, dimensions } = EmbeddingRequest::parse(&body)?;
    let model = state.model(&model)?;
    let embedder = model.as_embedder()?;
    embedder.check_width(dimensions)?;
    // The answer has no id of its own.
    record.begin(model.name(), record.id().to_str().unwrap_or_default());
    let texts = embedder.encode(inputs).await?;
    let tokens = texts.iter().map(Vec::len).sum();
    let Embeddings { vectors, queued } = embedder.embed(texts).await?;
    record.embed(model.name(), tokens, queued);
    Ok(Json(EmbeddingAnswer::new(model.name(), vectors, format, tokens)))
}
