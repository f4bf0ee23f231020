//! What texts need of a checkpoint's small files, as far as a bundle has them.

use std::{path::Path, sync::OnceLock};

use mlxcel_artifacts::Bundle;
use mlxcel_runtime::{
    AnswerText, ChatTemplate, CheckpointFiles, Error, TextFiles, Tokenizer,
    engine::SharedGrammar,
    eos_ids,
    grammar::{Constraint, GrammarCache},
};
use pyo3::prelude::*;

use crate::error;

/// The tokenizer and the chat template of a bundle, or why there is none: token ids need none.
pub(crate) struct Texts {
    files: Result<TextFiles, Error>,
    eos: Vec<u32>,
    grammars: OnceLock<GrammarCache>,
}

impl Texts {
    /// Reads the files of a bundle, or else of a checkpoint's folder.
    ///
    /// # Errors
    /// A file cannot be parsed.
    pub(crate) fn read(bundle: &Bundle, folder: Option<&Path>) -> Result<Self, Error> {
        let files = CheckpointFiles::new(bundle, folder);
        let eos = eos_ids(&files)?;
        let files = match TextFiles::read(&files) {
            Err(error) if !matches!(error, Error::NoTokenizer(_)) => return Err(error),
            files => files,
        };
        Ok(Self { files, eos, grammars: OnceLock::new() })
    }

    /// Returns the tokenizer.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn tokenizer(&self) -> PyResult<&Tokenizer> {
        self.files.as_ref().map(|files| &files.tokenizer).map_err(error::of_shared)
    }

    /// Returns the chat template, if there is one.
    pub(crate) fn template(&self) -> Option<&ChatTemplate> {
        self.files.as_ref().ok()?.template.as_ref()
    }

    /// Returns the tokens that end an answer.
    pub(crate) fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Begins the text of an answer that continues `before`. It stays empty without a tokenizer.
    ///
    /// # Errors
    /// The tokenizer refuses the text, or there is none to find stop texts with.
    pub(crate) fn answer(&self, before: &[u32], stops: &[String], eos: &[u32]) -> PyResult<AnswerText> {
        let stream = match &self.files {
            Ok(files) => Some(files.tokenizer.stream(before, stops).map_err(error::of)?),
            Err(error) if !stops.is_empty() => return Err(error::of_shared(error)),
            Err(_) => None,
        };
        Ok(AnswerText::new(stream, eos.to_vec()))
    }

    /// Returns the grammar of a constraint for a model with `vocab` logits.
    ///
    /// # Errors
    /// The constraint is invalid or cannot be enforced, or there is no tokenizer.
    pub(crate) fn grammar(&self, constraint: Constraint, vocab: usize) -> PyResult<SharedGrammar> {
        let tokenizer = self.tokenizer()?;
        let cache = || GrammarCache::new(tokenizer.clone(), vocab, self.eos.clone());
        self.grammars.get_or_init(cache).get(constraint).map_err(|error| error::of_shared(&error))
    }
}
