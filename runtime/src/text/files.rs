//! What texts need of a checkpoint's small files.

use super::{
    chat::ChatTemplate,
    tokenizer::{Tokenizer, eos_ids},
};
use crate::{checkpoint::CheckpointFiles, error::Error};

/// The tokenizer of a checkpoint, its chat template, and the tokens that end an answer.
#[derive(Debug, Clone)]
pub struct TextFiles {
    /// Turns text into tokens.
    pub tokenizer: Tokenizer,
    /// Renders chats; `None` if the checkpoint has no template.
    pub template: Option<ChatTemplate>,
    /// Tokens that end an answer.
    pub eos: Vec<u32>,
}

impl TextFiles {
    /// Reads the small files of a checkpoint.
    ///
    /// # Errors
    /// There is no tokenizer, or a file cannot be parsed.
    pub fn read(files: &CheckpointFiles<'_>) -> Result<Self, Error> {
        let template = match ChatTemplate::from_checkpoint(files) {
            Ok(template) => Some(template),
            Err(Error::NoChatTemplate(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { tokenizer: Tokenizer::from_checkpoint(files)?, template, eos: eos_ids(files)? })
    }
}
