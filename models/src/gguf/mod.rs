//! GGUF: what a file's metadata says about its model, in the words of Hugging Face's files.
//!
//! The description of a model is read from a config.json alone, so the metadata becomes one. The names of keys are those of
//! `gguf.constants` in gguf 0.19; what a key means is what llama.cpp's converter writes into it.

mod architectures;
mod file;
mod keys;
mod rope;
mod special;
mod tokenizer;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use self::{
    architectures::{ARCHITECTURES, Architecture},
    file::{File, METADATA},
    keys::Keys,
};
use crate::{
    config::ModelConfig,
    error::Error,
    json::Json,
    nearest::nearest,
    storage::{
        Scheme,
        schemes::gguf::{Gguf, Layout},
    },
};

pub use file::GgufTensorInfo;
pub use tokenizer::SmallFiles;

/// The key of the architecture.
const ARCHITECTURE: &str = "general.architecture";
/// The key of what a file holds: a model, an adapter or a projector of images.
const TYPE: &str = "general.type";
/// The key of tokens whose logits are left out.
const SUPPRESSED: &str = "tokenizer.ggml.suppress_tokens";

/// A model as a GGUF file describes it.
#[derive(Debug, Clone)]
pub struct GgufModel {
    file: File,
    architecture: &'static Architecture,
}

impl GgufModel {
    /// Tensors whose numbers are needed, where a file has them.
    pub const NUMBERS: [&'static str; 3] = [rope::FREQUENCIES, rope::LONG, rope::SHORT];

    /// Takes the metadata, the tensors, and the numbers of [`GgufModel::NUMBERS`].
    ///
    /// # Errors
    /// No family has the architecture.
    pub fn new(
        metadata: Map<String, Value>,
        tensors: impl IntoIterator<Item = GgufTensorInfo>,
        numbers: BTreeMap<String, Vec<f32>>,
    ) -> Result<Self, Error> {
        let json = Json::of_file(METADATA, &metadata);
        let Some(name) = json.text(ARCHITECTURE)? else {
            return Err(json.missing(ARCHITECTURE, "the name of an architecture"));
        };
        let Some(architecture) = ARCHITECTURES.iter().find(|known| known.name == name) else {
            let names = || ARCHITECTURES.iter().map(|known| known.name);
            let all = nearest(name, names(), ARCHITECTURES.len()).join(", ");
            return Err(json.unsupported(ARCHITECTURE, format!("one of {all}")));
        };
        let tensors = tensors.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
        let file = File { architecture: architecture.name, metadata, tensors, numbers };
        Ok(Self { file, architecture })
    }

    fn keys(&self) -> Keys<'_> {
        Keys::new(&self.file)
    }

    /// Returns the config.json of the model.
    ///
    /// # Errors
    /// A key is missing, has a value of the wrong type, or says what no description can express.
    pub fn config_json(&self) -> Result<String, Error> {
        let keys = self.keys();
        let mut config = (self.architecture.config)(&keys)?;
        special::add_ids(&keys, &mut config)?;
        keys.json.require(TYPE, "model", |value| value.as_str() == Some("model"))?;
        keys.json.require(SUPPRESSED, "no tokens that are never chosen", |value| {
            value.as_array().is_some_and(Vec::is_empty)
        })?;
        keys.refuse_unread()?;
        Ok(format!("{:#}\n", Value::Object(config)))
    }

    /// Returns the files of the tokenizer.
    ///
    /// # Errors
    /// A key of the tokenizer has a value of the wrong type.
    pub fn small_files(&self) -> Result<SmallFiles, Error> {
        tokenizer::small_files(&self.keys())
    }

    /// Adapts a model to the file's tensors: to their names and types, and to norms that are stored in another form.
    ///
    /// # Errors
    /// The metadata lacks the number of heads.
    pub fn adapt(&self, mut model: ModelConfig) -> Result<ModelConfig, Error> {
        let keys = self.keys();
        let Architecture { is_permuted, keeps_norm_names, has_whole_norms, .. } = *self.architecture;
        let layout = Layout { is_permuted, keeps_norm_names, heads: keys.heads()? };
        let blocks = self.file.tensors.values().filter(|tensor| tensor.in_blocks);
        let types = blocks.map(|tensor| (tensor.name.clone(), tensor.ty.clone())).collect();
        model.scheme = Some(Scheme::Gguf(Gguf { types, layout }));
        if has_whole_norms {
            model.norms_mut().for_each(|norm| norm.offset = 0.0);
        }
        Ok(model)
    }
}

#[cfg(test)]
mod tests;
