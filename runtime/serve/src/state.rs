//! What all requests share.

use std::{sync::Arc, time::Instant};

use axum::http::HeaderValue;
use mlxcel_artifacts::SecretKey;
use mlxcel_runtime::receipt::Receipt;
use subtle::{Choice, ConstantTimeEq as _};
use tokio::{sync::watch, time::sleep_until};

use crate::{
    api::error::ApiError, limits::Limits, model::ServedModel, models::Models, observe::record::Observer,
    tls::Tls,
};

/// Settings of a server.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Keys that clients need one of; none is needed if there are none.
    pub api_keys: Vec<String>,
    /// The key of those who administer the server by HTTP; nobody does without one.
    pub admin_key: Option<String>,
    /// The key that signs receipts; they have no signature without one.
    pub receipt_key: Option<Arc<SecretKey>>,
    /// What a client can take of the server.
    pub limits: Limits,
    /// Whether bodies of requests are in the log.
    pub log_prompts: bool,
    /// The names besides those of this machine that clients may know the server by. `None` lets them take any.
    pub hosts: Option<Vec<String>>,
    /// Origins of web pages that may ask, or `*`.
    pub cors_origins: Vec<HeaderValue>,
    /// What connections are encrypted with, if they are.
    pub tls: Option<Tls>,
}

/// The state of a server.
#[derive(Debug)]
pub(crate) struct State {
    models: Models,
    settings: Settings,
    observer: Arc<Observer>,
    /// True from the moment at which streams have to end.
    ending: watch::Receiver<bool>,
}

/// The state, as handlers take it.
pub(crate) type Shared = Arc<State>;

impl State {
    pub(crate) fn new(models: Models, settings: Settings, ending: watch::Receiver<bool>) -> Shared {
        Arc::new(Self { models, settings, observer: Observer::new(), ending })
    }

    pub(crate) fn observer(&self) -> &Arc<Observer> {
        &self.observer
    }

    pub(crate) fn hosts(&self) -> Option<&[String]> {
        self.settings.hosts.as_deref()
    }

    pub(crate) fn cors_origins(&self) -> &[HeaderValue] {
        &self.settings.cors_origins
    }

    pub(crate) fn logs_prompts(&self) -> bool {
        self.settings.log_prompts
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    pub(crate) fn models(&self) -> &Models {
        &self.models
    }

    /// Returns the model with this name. A client that names none takes the only one.
    pub(crate) fn model(&self, name: &str) -> Result<Arc<ServedModel>, ApiError> {
        Ok(self.models.find(name)?)
    }

    /// Returns whether clients need a key.
    pub(crate) fn needs_key(&self) -> bool {
        !self.settings.api_keys.is_empty()
    }

    /// Returns whether a key is one of the server's, or none is needed.
    pub(crate) fn allows(&self, key: Option<&str>) -> bool {
        !self.needs_key() || is_one_of(&self.settings.api_keys, key)
    }

    /// Returns whether a key is the admin key. `None` if there is no such key.
    pub(crate) fn allows_admin(&self, key: Option<&str>) -> Option<bool> {
        Some(is_one_of([self.settings.admin_key.as_ref()?], key))
    }

    /// Waits until the answer to a request that began at `start` has to end, and returns why.
    pub(crate) async fn cut(&self, start: Instant) -> ApiError {
        let Some(limit) = self.settings.limits.request else {
            self.ended().await;
            return ApiError::stopping();
        };
        tokio::select! {
            () = self.ended() => ApiError::stopping(),
            () = sleep_until((start + limit).into()) => ApiError::timed_out(limit),
        }
    }

    /// Signs a receipt, if there is a key.
    pub(crate) fn sign(&self, receipt: Receipt) -> Result<Receipt, ApiError> {
        match &self.settings.receipt_key {
            Some(key) => Ok(receipt.sign(key)?),
            None => Ok(receipt),
        }
    }

    /// Waits until streams have to end.
    async fn ended(&self) {
        let mut ending = self.ending.clone();
        if ending.wait_for(|ending| *ending).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Returns whether a key is known. Every one is compared, in a time that does not depend on where it differs.
fn is_one_of<'a>(known: impl IntoIterator<Item = &'a String>, key: Option<&str>) -> bool {
    let key = key.unwrap_or_default().as_bytes();
    let equal = known.into_iter().map(|known| known.as_bytes().ct_eq(key));
    equal.fold(Choice::from(0), |any, one| any | one).into()
}
