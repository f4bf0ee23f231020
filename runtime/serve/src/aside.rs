//! Work that takes a while.

use tokio::task;

use crate::api::error::ApiError;

/// Does what may take a while on a thread of its own, so that other requests go on meanwhile.
///
/// # Errors
/// As `work`, or the server is about to end.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    task::spawn_blocking(work).await.unwrap_or_else(|_| Err(ApiError::stopping()))
}
