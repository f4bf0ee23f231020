//! Grammars of answers, compiled off the engine's thread.

use std::sync::Arc;

use mlxcel_runtime::{
    engine::SharedGrammar,
    grammar::{Constraint, GrammarCache},
};
use tokio::sync::Semaphore;

use crate::{api::error::ApiError, aside::aside};

/// Grammars that are compiled at once. A hostile one takes long.
const AT_ONCE: usize = 2;

/// What an answer must be, and its grammar.
#[derive(Debug, Clone)]
pub(crate) struct Enforced {
    pub(crate) constraint: Constraint,
    pub(crate) grammar: SharedGrammar,
}

/// The grammars of a model.
#[derive(Debug, Clone)]
pub(crate) struct Grammars {
    cache: Arc<GrammarCache>,
    permits: Arc<Semaphore>,
}

impl Grammars {
    pub(crate) fn new(cache: GrammarCache) -> Self {
        Self { cache: Arc::new(cache), permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Reads the vocabulary ahead of the first request that needs it.
    pub(crate) fn warm(&self) {
        self.cache.warm();
    }

    /// Returns the grammar of a constraint, if there is one.
    ///
    /// # Errors
    /// As [`Grammars::get`].
    pub(crate) async fn get_any(
        &self,
        constraint: Option<&Constraint>,
    ) -> Result<Option<Enforced>, ApiError> {
        match constraint {
            Some(constraint) => {
                let of = |error: ApiError| error.about(field(constraint));
                self.get(constraint).await.map(Some).map_err(of)
            }
            None => Ok(None),
        }
    }

    /// Returns the grammar of a constraint.
    ///
    /// # Errors
    /// The constraint is invalid, or cannot be enforced.
    pub(crate) async fn get(&self, constraint: &Constraint) -> Result<Enforced, ApiError> {
        let grammar = self.grammar(constraint).await?;
        Ok(Enforced { constraint: constraint.clone(), grammar })
    }

    async fn grammar(&self, constraint: &Constraint) -> Result<SharedGrammar, ApiError> {
        let found = self.cache.find(constraint);
        let found = match found {
            Some(found) => found,
            None => {
                let permit = self.permits.clone().acquire_owned();
                let permit = permit.await.map_err(|_| ApiError::stopping())?;
                let (cache, constraint) = (self.cache.clone(), constraint.clone());
                let compile = move || {
                    // A client that is gone does not end the work.
                    let _permit = permit;
                    Ok(cache.compile(&constraint))
                };
                aside(compile).await?
            }
        };
        found.map_err(|error| ApiError::from(&*error))
    }
}

/// Returns the field of a request that has a constraint.
fn field(constraint: &Constraint) -> &'static str {
    match constraint {
        Constraint::JsonSchema(_) => "response_format",
        Constraint::Regex(_) => "regex",
        Constraint::Lark(_) => "grammar",
    }
}
