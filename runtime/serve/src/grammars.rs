//! Grammars of answers, compiled off the engine's thread.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use mlxcel_runtime::{
    ModelLimits, Tokenizer,
    engine::SharedGrammar,
    grammar::{Constraint, GrammarCompiler},
};
use tokio::sync::Semaphore;

use crate::{api::error::ApiError, aside::aside};

/// Grammars that are kept, because clients send the same schema again and again.
const KEPT: usize = 64;

/// Grammars that are compiled at once. A hostile one takes long.
const AT_ONCE: usize = 2;

/// A grammar, or why there is none: clients send what is refused again and again, too.
type Compiled = Result<SharedGrammar, ApiError>;

/// What an answer must be, and its grammar.
#[derive(Debug, Clone)]
pub(crate) struct Enforced {
    pub(crate) constraint: Constraint,
    pub(crate) grammar: SharedGrammar,
}

/// The grammars of a model.
#[derive(Debug, Clone)]
pub(crate) struct Grammars(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tokenizer: Tokenizer,
    eos: Vec<u32>,
    limits: ModelLimits,
    /// Made at its first use, because it reads the whole vocabulary.
    compiler: OnceLock<Result<GrammarCompiler, ApiError>>,
    /// The latest used are last.
    compiled: Mutex<VecDeque<(Constraint, Compiled)>>,
    permits: Arc<Semaphore>,
}

impl Grammars {
    pub(crate) fn new(tokenizer: Tokenizer, eos: Vec<u32>, limits: ModelLimits) -> Self {
        Self(Arc::new(Inner {
            tokenizer,
            eos,
            limits,
            compiler: OnceLock::new(),
            compiled: Mutex::default(),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
        }))
    }

    /// Reads the vocabulary ahead of the first request that needs it.
    pub(crate) fn warm(&self) {
        _ = self.0.compiler();
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

    async fn grammar(&self, constraint: &Constraint) -> Compiled {
        if let Some(found) = self.0.find(constraint) {
            return found;
        }
        let permit = self.0.permits.clone().acquire_owned().await.map_err(|_| ApiError::stopping())?;
        let (inner, constraint) = (self.0.clone(), constraint.clone());
        aside(move || {
            // A client that is gone does not end the work.
            let _permit = permit;
            inner.compile(constraint)
        })
        .await
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

impl Inner {
    fn compiler(&self) -> &Result<GrammarCompiler, ApiError> {
        let make = || Ok(GrammarCompiler::new(&self.tokenizer, self.limits.vocab, &self.eos)?);
        self.compiler.get_or_init(make)
    }

    fn find(&self, constraint: &Constraint) -> Option<Compiled> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let index = compiled.iter().position(|(known, _)| known == constraint)?;
        let found = compiled.remove(index)?;
        let grammar = found.1.clone();
        compiled.push_back(found);
        Some(grammar)
    }

    fn compile(&self, constraint: Constraint) -> Compiled {
        let compiler = self.compiler().as_ref().map_err(Clone::clone)?;
        let grammar = compiler.compile(&constraint).map_err(ApiError::from);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= KEPT {
            compiled.pop_front();
        }
        compiled.push_back((constraint, grammar.clone()));
        grammar
    }
}
