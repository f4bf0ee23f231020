//! `GET /v1/models`.

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{api::error::ApiError, facts::Facts, model::ServedModel, state::Shared};

/// A model, as OpenAI lists it, with the facts of its bundle.
#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Whether it can take turns. Otherwise it only continues texts.
    chat_template: bool,
    #[serde(flatten)]
    facts: &'a Facts,
}

pub(super) async fn list(State(state): State<Shared>) -> Json<Value> {
    let models = state.models().all();
    let entries: Vec<_> = models.iter().map(|model| describe(model)).collect();
    Json(json!({ "object": "list", "data": entries }))
}

pub(super) async fn one(State(state): State<Shared>, Path(name): Path<String>) -> Result<Response, ApiError> {
    Ok(Json(describe(&*state.model(&name)?)).into_response())
}

fn describe(model: &ServedModel) -> Entry<'_> {
    Entry {
        id: model.name(),
        object: "model",
        created: model.created(),
        owned_by: "mlxcel",
        chat_template: model.has_template(),
        facts: model.facts(),
    }
}
