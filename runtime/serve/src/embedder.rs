//! A model that makes embeddings of texts.

use std::sync::Arc;

use mlxcel_runtime::{Embeddings, EncoderClient, EncoderThread, EngineError, Error, Tokenizer};
use tokio::sync::oneshot;

use crate::{
    api::{error::ApiError, prompts::Prompt},
    aside::aside,
    thread_end::ThreadEnd,
};

/// The most tokens of a request, as OpenAI has it.
const MAX_TOKENS: usize = 300_000;

/// A model that makes embeddings of texts.
#[derive(Debug)]
pub(crate) struct Embedder {
    tokenizer: Tokenizer,
    client: EncoderClient,
    /// Ends with the model.
    _encoder: ThreadEnd<EncoderThread>,
}

impl Embedder {
    pub(crate) fn new(tokenizer: Tokenizer, encoder: EncoderThread) -> Self {
        Self { tokenizer, client: encoder.client(), _encoder: ThreadEnd::new(encoder) }
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub(crate) fn client(&self) -> &EncoderClient {
        &self.client
    }

    /// Checks the width that a request asks for.
    ///
    /// # Errors
    /// It is not that of the model's embeddings.
    pub(crate) fn check_width(&self, dimensions: Option<usize>) -> Result<(), ApiError> {
        let width = self.client.limits().width;
        match dimensions.filter(|&dimensions| dimensions != width) {
            Some(found) => {
                let message = format!("dimensions is {found}, but only {width} is supported");
                Err(ApiError::invalid_field("dimensions", message))
            }
            None => Ok(()),
        }
    }

    /// Returns the tokens of texts, with the special tokens that the checkpoint adds.
    ///
    /// # Errors
    /// There are too many, or the tokenizer refuses a text.
    pub(crate) async fn encode(self: &Arc<Self>, texts: Vec<Prompt>) -> Result<Vec<Vec<u32>>, ApiError> {
        let embedder = self.clone();
        aside(move || {
            let (mut encoded, mut count) = (Vec::with_capacity(texts.len()), 0);
            for text in texts {
                let tokens = text.encode(&embedder.tokenizer)?;
                count += tokens.len();
                if count > MAX_TOKENS {
                    let message =
                        format!("the texts have more than {MAX_TOKENS} tokens, expected at most that");
                    return Err(ApiError::invalid_field("input", message));
                }
                encoded.push(tokens);
            }
            Ok(encoded)
        })
        .await
    }

    /// Computes the embeddings of texts. Dropping the future ends the request.
    ///
    /// # Errors
    /// A text is refused, the queue is full, or the device fails.
    pub(crate) async fn embed(&self, texts: Vec<Vec<u32>>) -> Result<Embeddings, ApiError> {
        let (sender, answer) = oneshot::channel();
        let _guard = self.client.try_embed_to(texts, Box::new(move |found| _ = sender.send(found)))?;
        let answer = answer.await.unwrap_or_else(|_| Err(Error::from(EngineError::Closed)));
        Ok(answer?)
    }
}
