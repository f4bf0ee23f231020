//! A model in a process of its user: text in and text out, on a thread of its own.

pub(crate) mod answer_text;
pub(crate) mod model;
pub(crate) mod options;
pub(crate) mod request;
pub(crate) mod started;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod texts;
