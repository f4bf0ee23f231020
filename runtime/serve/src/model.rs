//! A bundle that is served.

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use mlxcel_artifacts::Digest;
use mlxcel_runtime::{
    EncoderThread, TextFiles, Tokenizer,
    engine::{EngineThread, Usage},
    model::PoolLimits,
};

use crate::{api::error::ApiError, embedder::Embedder, facts::Facts, generator::Generator};

/// A bundle that is served under a name.
#[derive(Debug)]
pub struct ServedModel {
    name: String,
    created: u64,
    facts: Facts,
    role: Role,
}

/// What a model does.
#[derive(Debug)]
enum Role {
    Generator(Arc<Generator>),
    Embedder(Arc<Embedder>),
}

impl ServedModel {
    /// Serves what an engine runs, which continues texts and chats.
    #[must_use]
    pub fn generator(name: String, facts: Facts, text: TextFiles, engine: EngineThread) -> Arc<Self> {
        let generator = Generator::new(name.clone(), text, engine);
        Self::new(name, facts, Role::Generator(Arc::new(generator)))
    }

    /// Serves an encoder, which makes embeddings of texts.
    #[must_use]
    pub fn embedder(name: String, facts: Facts, tokenizer: Tokenizer, encoder: EncoderThread) -> Arc<Self> {
        Self::new(name, facts, Role::Embedder(Arc::new(Embedder::new(tokenizer, encoder))))
    }

    fn new(name: String, facts: Facts, role: Role) -> Arc<Self> {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Arc::new(Self { name, created, facts, role })
    }

    /// Returns the name of a bundle at a path, or of a store's name.
    #[must_use]
    pub fn name_of(bundle: &Path) -> String {
        let name = bundle.file_name().unwrap_or(bundle.as_os_str()).to_string_lossy();
        name.strip_suffix(".bundle").unwrap_or(&name).to_owned()
    }

    /// Returns the name that clients choose it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns when the model was loaded, in seconds since 1970.
    pub(crate) fn created(&self) -> u64 {
        self.created
    }

    /// Returns the digest of the bundle's manifest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.facts.digest
    }

    /// Returns what clients see of the bundle.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns what continues texts.
    ///
    /// # Errors
    /// The model makes embeddings.
    pub(crate) fn as_generator(&self) -> Result<&Arc<Generator>, ApiError> {
        match &self.role {
            Role::Generator(generator) => Ok(generator),
            Role::Embedder(_) => {
                let message =
                    format!("the model `{}` makes embeddings, expected one that generates", self.name);
                Err(ApiError::invalid_field("model", message))
            }
        }
    }

    /// Returns what makes embeddings.
    ///
    /// # Errors
    /// The model generates texts.
    pub(crate) fn as_embedder(&self) -> Result<&Arc<Embedder>, ApiError> {
        match &self.role {
            Role::Embedder(embedder) => Ok(embedder),
            Role::Generator(_) => {
                let message =
                    format!("the model `{}` generates texts, expected one that makes embeddings", self.name);
                Err(ApiError::invalid_field("model", message))
            }
        }
    }

    /// Reads the vocabulary ahead of the first request for an answer in a format.
    pub fn warm(&self) {
        if let Role::Generator(generator) = &self.role {
            generator.grammars().warm();
        }
    }

    /// Returns whether it can answer.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.role {
            Role::Generator(generator) => generator.client().is_ready(),
            Role::Embedder(embedder) => embedder.client().is_ready(),
        }
    }

    /// Returns what it has at the moment, and what it has done.
    pub(crate) fn usage(&self) -> Usage {
        match &self.role {
            Role::Generator(generator) => generator.client().usage(),
            Role::Embedder(embedder) => embedder.client().usage(),
        }
    }

    /// Returns the most requests that can wait.
    pub(crate) fn queue_limit(&self) -> usize {
        match &self.role {
            Role::Generator(generator) => generator.client().queue_limit(),
            Role::Embedder(embedder) => embedder.client().queue_limit(),
        }
    }

    /// Returns the pools of its cache. Those of [`Usage::pools`] are in the same order.
    pub(crate) fn pools(&self) -> &[PoolLimits] {
        match &self.role {
            Role::Generator(generator) => &generator.client().limits().pools,
            Role::Embedder(_) => &[],
        }
    }

    /// Returns the number of token ids.
    pub(crate) fn vocabulary(&self) -> usize {
        match &self.role {
            Role::Generator(generator) => generator.client().limits().vocab,
            Role::Embedder(embedder) => embedder.client().limits().vocab,
        }
    }

    /// Returns whether chats can be rendered.
    pub(crate) fn has_template(&self) -> bool {
        matches!(&self.role, Role::Generator(generator) if generator.has_template())
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        match &self.role {
            Role::Generator(generator) => generator.tokenizer(),
            Role::Embedder(embedder) => embedder.tokenizer(),
        }
    }
}
