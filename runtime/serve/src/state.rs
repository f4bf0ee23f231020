//! What all requests share.

use std::sync::Arc;

use subtle::{Choice, ConstantTimeEq as _};
use tokio::sync::watch;

use crate::{api::error::ApiError, model::ServedModel};

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Keys that clients need one of; none is needed if there are none.
    pub api_keys: Vec<String>,
    /// The largest body of a request, in bytes.
    pub max_body: usize,
}

impl Default for Settings {
    /// Returns settings without keys, for bodies of up to 16 MiB.
    fn default() -> Self {
        Self { api_keys: Vec::new(), max_body: 16 << 20 }
    }
}

/// The state of a server.
#[derive(Debug)]
pub(crate) struct State {
    models: Vec<Arc<ServedModel>>,
    settings: Settings,
    /// True from the moment at which streams have to end.
    ending: watch::Receiver<bool>,
}

/// The state, as handlers take it.
pub(crate) type Shared = Arc<State>;

impl State {
    pub(crate) fn new(
        models: Vec<Arc<ServedModel>>,
        settings: Settings,
        ending: watch::Receiver<bool>,
    ) -> Shared {
        Arc::new(Self { models, settings, ending })
    }

    pub(crate) fn max_body(&self) -> usize {
        self.settings.max_body
    }

    pub(crate) fn models(&self) -> &[Arc<ServedModel>] {
        &self.models
    }

    /// Returns the model with this name. A client that names none takes the only one.
    pub(crate) fn model(&self, name: &str) -> Result<&Arc<ServedModel>, ApiError> {
        let found = match (name, self.models.as_slice()) {
            ("", [only]) => Some(only),
            _ => self.models.iter().find(|model| model.name() == name),
        };
        let served = || self.models.iter().map(|model| model.name()).collect::<Vec<_>>();
        found.ok_or_else(|| ApiError::no_model(name, &served()))
    }

    /// Returns whether a key is one of the server's, or none is needed.
    pub(crate) fn allows(&self, key: Option<&str>) -> bool {
        let key = key.unwrap_or_default().as_bytes();
        // Every key is compared, in a time that does not depend on where it differs.
        let equal = self.settings.api_keys.iter().map(|known| known.as_bytes().ct_eq(key));
        self.settings.api_keys.is_empty() || bool::from(equal.fold(Choice::from(0), |any, one| any | one))
    }

    /// Waits until streams have to end.
    pub(crate) async fn ended(&self) {
        let mut ending = self.ending.clone();
        if ending.wait_for(|ending| *ending).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
