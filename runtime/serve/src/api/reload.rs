//! `POST /admin/reload`.

use super::{error::ApiError, fields::Fields};
use crate::reload::Reload;

/// A request to exchange a bundle.
#[derive(Debug)]
pub(crate) struct ReloadRequest {
    pub(crate) model: String,
    pub(crate) order: Reload,
}

impl ReloadRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// It is no JSON object, a field is wrong, or one is not supported.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::parse(body)?;
        let model = fields.take("model")?.unwrap_or_default();
        let order = Reload { bundle: fields.take("bundle")?, digest: fields.take("digest")? };
        fields.finish()?;
        Ok(Self { model, order })
    }
}
