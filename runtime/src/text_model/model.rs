//! A loaded model with its tokenizer.

use std::path::Path;

use mlxcel_artifacts::Bundle;

use super::{
    options::AnswerOptions,
    request::{Prompt, TextRequest},
    started::StartedModel,
    stream::{AnswerReader, AnswerStream},
    texts::Texts,
};
use crate::{
    encoder::thread::EncoderClient,
    engine::{EngineClient, EngineSettings},
    error::Error,
    iree::LoadOptions,
    text::{message::Chat, tokenizer::Tokenizer},
    weights::Weights,
};

/// A loaded model with its tokenizer. Threads share it.
#[derive(Debug)]
pub struct TextModel {
    bundle: Bundle,
    model: StartedModel,
    texts: Texts,
}

impl TextModel {
    /// Loads a bundle on a thread of its own, with the weights at `weights` or its own.
    ///
    /// # Errors
    /// The weights are of another model, a file of the tokenizer is damaged, or the bundle cannot be loaded
    /// ([`load`](crate::load)).
    pub fn load(
        bundle: Bundle,
        weights: Option<&Path>,
        options: LoadOptions,
        settings: EngineSettings,
    ) -> Result<Self, Error> {
        // A program is refused as what it is.
        bundle.manifest().model_spec()?;
        let chosen = Weights::choose(&bundle, weights)?;
        if let Some(chosen) = &chosen {
            chosen.check(&bundle.manifest().parameters)?;
        }
        let texts = Texts::read(&bundle, weights.filter(|path| path.is_dir()))?;
        let model = StartedModel::start(&bundle, chosen, options, settings)?;
        Ok(Self { bundle, model, texts })
    }

    /// Returns the bundle.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Returns the model's thread.
    #[must_use]
    pub fn model(&self) -> &StartedModel {
        &self.model
    }

    /// Returns what continues texts.
    ///
    /// # Errors
    /// The model makes embeddings.
    pub fn generator(&self) -> Result<EngineClient, Error> {
        match &self.model {
            StartedModel::Generator(engine) => Ok(engine.client()),
            StartedModel::Encoder(_) => {
                Err(Error::OnlyEmbedding { model: self.bundle.manifest().model.clone() })
            }
        }
    }

    /// Returns what makes embeddings.
    ///
    /// # Errors
    /// The model continues texts.
    pub fn encoder(&self) -> Result<EncoderClient, Error> {
        match &self.model {
            StartedModel::Encoder(encoder) => Ok(encoder.client()),
            StartedModel::Generator(_) => {
                Err(Error::NoEmbedding { model: self.bundle.manifest().model.clone() })
            }
        }
    }

    /// Returns the tokenizer.
    ///
    /// # Errors
    /// The bundle has none.
    pub fn tokenizer(&self) -> Result<&Tokenizer, Error> {
        self.texts.tokenizer()
    }

    /// Renders a chat by the model's template and encodes it.
    ///
    /// # Errors
    /// The model has no template, or the template refuses the chat.
    pub fn encode_chat(&self, chat: &Chat) -> Result<Vec<u32>, Error> {
        self.generator()?;
        self.tokenizer()?.encode_chat(self.texts.template()?, chat)
    }

    /// Makes the request that answers a prompt.
    ///
    /// # Errors
    /// An option is out of its range, or the grammar cannot be used.
    pub fn request(&self, prompt: Prompt, options: &AnswerOptions) -> Result<TextRequest, Error> {
        let client = self.generator()?;
        let grammar = options.constraint(&self.texts, client.limits().vocab)?;
        let before = prompt.before(grammar.is_some());
        let room = client.room(prompt.tokens.len());
        let request = options.request(prompt, self.texts.eos(), grammar, room)?;
        Ok(TextRequest { request, before, stop: options.stop.clone() })
    }

    /// Submits a request.
    ///
    /// # Errors
    /// The request is refused, or the queue is full.
    pub fn submit(&self, request: TextRequest) -> Result<AnswerStream, Error> {
        AnswerStream::start(&self.generator()?, self.answer(&request)?, request.request)
    }

    /// Begins to read the answer to a request.
    ///
    /// # Errors
    /// The tokenizer refuses the prompt, or there is none to find stop texts with.
    pub fn answer(&self, request: &TextRequest) -> Result<AnswerReader, Error> {
        let TextRequest { request, before, stop } = request;
        let text = self.texts.answer(before, stop, &request.eos)?;
        Ok(AnswerReader::new(text, request.logprobs.is_some()))
    }
}
