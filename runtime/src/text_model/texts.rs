//! What texts need of a checkpoint's small files, as far as a bundle has them.

use std::path::Path;

use mlxcel_artifacts::Bundle;

use super::answer_text::AnswerText;
use crate::{
    checkpoint::CheckpointFiles,
    error::Error,
    text::{
        chat::ChatTemplate,
        files::TextFiles,
        tokenizer::{Tokenizer, eos_ids},
    },
};
#[cfg(feature = "grammar")]
use crate::{
    engine::SharedGrammar,
    error::EngineError,
    grammar::{Constraint, GrammarCache},
};

/// The tokenizer and the chat template of a bundle, or where they were looked for: token ids need none.
#[derive(Debug)]
pub(super) struct Texts {
    files: Result<TextFiles, String>,
    /// The bundle and the folder as messages name them.
    locations: String,
    eos: Vec<u32>,
    #[cfg(feature = "grammar")]
    grammars: std::sync::OnceLock<GrammarCache>,
}

impl Texts {
    /// Reads the files of a bundle, or else of a checkpoint's folder.
    ///
    /// # Errors
    /// A file cannot be parsed.
    pub(super) fn read(bundle: &Bundle, folder: Option<&Path>) -> Result<Self, Error> {
        let files = CheckpointFiles::new(bundle, folder);
        let (eos, locations) = (eos_ids(&files)?, files.locations());
        let files = match TextFiles::read(&files) {
            Err(Error::NoTokenizer(locations)) => Err(locations),
            files => Ok(files?),
        };
        Ok(Self {
            files,
            locations,
            eos,
            #[cfg(feature = "grammar")]
            grammars: std::sync::OnceLock::new(),
        })
    }

    /// Returns the tokenizer.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn tokenizer(&self) -> Result<&Tokenizer, Error> {
        let files = self.files.as_ref().map_err(|locations| Error::NoTokenizer(locations.clone()))?;
        Ok(&files.tokenizer)
    }

    /// Returns the chat template.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn template(&self) -> Result<&ChatTemplate, Error> {
        let template = self.files.as_ref().ok().and_then(|files| files.template.as_ref());
        template.ok_or_else(|| Error::NoChatTemplate(self.locations.clone()))
    }

    /// Returns the tokens that end an answer.
    pub(super) fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Begins the text of an answer that continues `before`. It stays empty without a tokenizer.
    ///
    /// # Errors
    /// The tokenizer refuses the text, or there is none to find stop texts with.
    pub(super) fn answer(&self, before: &[u32], stop: &[String], eos: &[u32]) -> Result<AnswerText, Error> {
        let stream = match &self.files {
            Ok(files) => Some(files.tokenizer.stream(before, stop)?),
            Err(locations) if !stop.is_empty() => return Err(Error::NoTokenizer(locations.clone())),
            Err(_) => None,
        };
        Ok(AnswerText::new(stream, eos.to_vec()))
    }

    /// Returns the grammar of a constraint for a model with `vocab` logits.
    ///
    /// # Errors
    /// The constraint is invalid or cannot be enforced, or there is no tokenizer.
    #[cfg(feature = "grammar")]
    pub(super) fn grammar(&self, constraint: &Constraint, vocab: usize) -> Result<SharedGrammar, Error> {
        let tokenizer = self.tokenizer()?;
        let cache = || GrammarCache::new(tokenizer.clone(), vocab, self.eos.clone());
        let found = self.grammars.get_or_init(cache).get(constraint);
        found.map_err(|error| match &*error {
            Error::Engine(error) => error.clone().into(),
            other => EngineError::Grammar { problem: other.to_string() }.into(),
        })
    }
}
