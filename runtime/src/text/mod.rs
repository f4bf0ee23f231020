//! Tokenizers and chat templates.

pub(crate) mod chat;
pub(crate) mod tokenizer;
