//! A bundle's model on a thread of its own: what a program needs that serves others.

use mlxcel_artifacts::Bundle;

use crate::{
    encoder::thread::EncoderThread,
    engine::{EngineSettings, EngineThread},
    error::Error,
    iree::{LoadOptions, load, load_encoder},
    model::ModelRunner,
    weights::Weights,
};

/// A model on a thread of its own.
#[derive(Debug)]
pub enum StartedModel {
    /// It continues texts.
    Generator(EngineThread),
    /// It makes embeddings of texts.
    Encoder(EncoderThread),
}

impl StartedModel {
    /// Loads a bundle on a thread of its own.
    ///
    /// # Errors
    /// The bundle cannot be loaded ([`load`]).
    pub fn start(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: LoadOptions,
        settings: EngineSettings,
    ) -> Result<Self, Error> {
        let loaded = bundle.clone();
        if bundle.manifest().model_spec()?.embedding.is_some() {
            let load = move || load_encoder(&loaded, weights, &options);
            return EncoderThread::start(load, settings).map(Self::Encoder);
        }
        let load = move || -> Result<Box<dyn ModelRunner>, _> { load(&loaded, weights, &options) };
        EngineThread::start(load, settings).map(Self::Generator)
    }

    /// Ends all requests, and takes no more.
    ///
    /// Does not wait: dropping the model does.
    pub fn stop(&self) {
        match self {
            Self::Generator(engine) => engine.stop(),
            Self::Encoder(encoder) => encoder.stop(),
        }
    }
}
