//! OpenAI's wire format: requests, answers and errors, by the names of its API reference.

pub(crate) mod answers;
pub(crate) mod chat;
pub(crate) mod completion;
mod constraint;
pub(crate) mod embeddings;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod generation;
mod messages;
mod object;
pub(crate) mod prompts;
pub(crate) mod reload;
pub(crate) mod tokens;
pub(crate) mod tools;
