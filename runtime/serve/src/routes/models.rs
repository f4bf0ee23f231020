//! `GET /v1/models`.

use axum::{
    Json,
    extract::{Path, State},
};
use serde_json::{Value, json};

use crate::{api::error::ApiError, model::ServedModel, state::Shared};

pub(super) async fn list(State(state): State<Shared>) -> Json<Value> {
    let models: Vec<_> = state.models().iter().map(|model| describe(model)).collect();
    Json(json!({ "object": "list", "data": models }))
}

pub(super) async fn one(
    State(state): State<Shared>,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(describe(state.model(&name)?)))
}

fn describe(model: &ServedModel) -> Value {
    json!({
        "id": model.name(),
        "object": "model",
        "created": model.created(),
        "owned_by": "mlxcel",
        "digest": model.digest().to_string(),
        "context": model.context(),
    })
}
