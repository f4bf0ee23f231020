//! A model in a process of its user: text in and text out, on a thread of its own.

pub(crate) mod answer_text;
pub(crate) mod options;
pub(crate) mod started;
pub(crate) mod stream;
pub(crate) mod texts;

use std::path::Path;

use mlxcel_artifacts::Bundle;

use self::{options::AnswerOptions, started::StartedModel, stream::AnswerStream, texts::Texts};
use crate::{
    encoder::thread::EncoderClient,
    engine::{EngineClient, EngineSettings, Request},
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

/// A prompt in tokens, and whether its answer is a message of its own or continues the prompt's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// True for a chat.
    pub is_message: bool,
}

/// A request, with the text that its answer continues and the texts that end it.
#[derive(Debug)]
pub struct TextRequest {
    /// The request.
    pub request: Request,
    pub(crate) before: Vec<u32>,
    pub(crate) stop: Vec<String>,
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
        let vocab = self.generator()?.limits().vocab;
        let grammar = options.constraint(&self.texts, vocab)?;
        let before = if prompt.is_message { Vec::new() } else { prompt.tokens.clone() };
        let request = options.request(prompt, self.texts.eos(), grammar)?;
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
    pub fn answer(&self, request: &TextRequest) -> Result<stream::AnswerReader, Error> {
        let TextRequest { request, before, stop } = request;
        let text = self.texts.answer(before, stop, &request.eos)?;
        Ok(stream::AnswerReader::new(text, request.logprobs.is_some()))
    }
}
