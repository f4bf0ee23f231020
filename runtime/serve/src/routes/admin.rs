//! Administration: `POST /admin/reload`.

use axum::{Json, extract::State};
use mlxcel_artifacts::report;
use serde_json::{Value, json};
use tokio::task;
use tracing::{info, warn};

use super::body::JsonBody;
use crate::{
    api::{error::ApiError, reload::ReloadRequest},
    reload::Reloaded,
    state::Shared,
};

/// Puts a bundle in the place of the one that is served under a name.
pub(super) async fn reload(
    State(state): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, ApiError> {
    let ReloadRequest { model, order } = ReloadRequest::parse(&body)?;
    let model = state.models().find(&model)?.name().to_owned();
    let (models, name) = (state.models().clone(), model.clone());
    // A client that goes away does not end it.
    let reloaded = task::spawn_blocking(move || models.reload(&name, order)).await;
    let reloaded = reloaded.map_err(|_| ApiError::stopping())?;
    let reloaded = reloaded.inspect_err(|error| warn!(model, error = report(error), "not reloaded"));
    let Reloaded { previous, digest, is_loaded } = reloaded?;
    info!(model, changed = is_loaded, %digest, "reloaded");
    Ok(Json(json!({
        "model": model,
        "changed": is_loaded,
        "digest": digest,
        "previous_digest": previous,
    })))
}
