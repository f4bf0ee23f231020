//! Text to tokens and back, and chats as text.

pub(crate) mod chat;
pub(crate) mod tokenizer;
