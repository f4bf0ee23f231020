//! Tokenizers and chat templates.

pub(crate) mod chat;
mod json;
pub(crate) mod message;
mod special;
pub(crate) mod tokenizer;
pub(crate) mod vocabulary;
