//! Tokenizers and chat templates.

pub(crate) mod chat;
pub(crate) mod files;
pub(crate) mod held;
mod json;
pub(crate) mod message;
mod special;
pub(crate) mod stream;
pub(crate) mod tokenizer;
pub(crate) mod vocabulary;
