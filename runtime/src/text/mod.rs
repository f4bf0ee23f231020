//! Tokenizers and chat templates.

pub(crate) mod chat;
mod special;
pub(crate) mod tokenizer;
pub(crate) mod vocabulary;
